import java.util.ArrayList;
import java.util.Arrays;
import java.util.List;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.UnaryOperator;
import java.util.regex.Matcher;
import java.util.regex.Pattern;

/**
 * Translates whole texts, sentence by sentence, and keeps what must not change, by the rules in translator.json.
 *
 * <pre>
 *   Texts texts = new Texts(gson.fromJson(json, Map.class));  // with any library that reads JSON as maps and lists
 *   texts.translate(text, translator::translate);
 * </pre>
 *
 * The same as keras_transformer/text/sentences.py and placeholders.py, which have the rules and say what they do.
 *
 * Java's own expressions need much stack: a thousand line breaks in a row, or a path of some thousand parts, are a
 * StackOverflowError. On a server, translate in a thread with a large stack. Android's expressions have no such limit.
 */
public final class Texts {
    private static final class Protected {
        final String text;
        final List<String> parts;

        Protected(String text, List<String> parts) {
            this.text = text;
            this.parts = parts;
        }
    }

    private static final Map<String, Pattern> PATTERNS = new ConcurrentHashMap<>();

    private final Map<?, ?> sentences, placeholders;
    private final int count;

    /** `settings` is the content of translator.json. */
    public Texts(Map<?, ?> settings) {
        sentences = (Map<?, ?>) settings.get("sentences");
        placeholders = (Map<?, ?>) settings.get("placeholders");
        count = ((Number) settings.get("num_placeholders")).intValue();
    }

    /**
     * The translation of a text. `model` translates a sentence, or returns null if it is too long; then it gets the
     * sentence in two parts.
     */
    public String translate(String text, UnaryOperator<String> model) {
        List<String> parts = new ArrayList<>();
        for (String part : split(text)) {
            if (parts.size() % 2 == 0) parts.add(part);
            else parts.addAll(translated(part, model));
        }
        return joined(parts);
    }

    /** Separators and sentences of a text, in turn. */
    public List<String> split(String text) {
        List<?> frame = (List<?>) sentences.get("frame"), cutOff = (List<?>) sentences.get("cut_off");
        String marked = replaced(frame.get(0) + replaced(text, sentences, "before") + frame.get(1), sentences, "rules");
        int begin = ((Number) cutOff.get(0)).intValue(), end = ((Number) cutOff.get(1)).intValue();
        return cut(marked.substring(begin, marked.length() - end), sentences);
    }

    /** The text of separators and translated sentences, in turn. */
    public String joined(List<String> parts) {
        StringBuilder marked = new StringBuilder();
        for (int i = 0; i < parts.size(); i++) {
            String part = parts.get(i);
            if (i % 2 == 0) marked.append(part);
            else marked.append(sentences.get("begin")).append(replaced(part, sentences, "before")).append(sentences.get("end"));
        }
        return String.join("", cut(replaced(replaced(marked.toString(), sentences, "join"), sentences, "to_cuts"), sentences));
    }

    /** The translation of a sentence, or those of its parts and the separators between them, in turn. */
    private List<String> translated(String sentence, UnaryOperator<String> model) {
        Protected source = protect(replaced(sentence, sentences, "unwrap"));
        boolean words = source.parts.isEmpty() || hasWords(source.text);
        String translation = words ? model.apply(source.text) : source.text;
        if (translation != null) return List.of(restored(translation, source));
        int[] characters = sentence.codePoints().toArray();
        if (characters.length < 2) throw new IllegalArgumentException("A character is too long for the model: " + sentence);
        List<String> found = new ArrayList<>(), parts = inTwo(characters);
        found.addAll(translated(parts.get(0), model));
        found.add(parts.get(1));
        found.addAll(translated(parts.get(2), model));
        return found;
    }

    /** The first part, the separator and the second part of a sentence. */
    private List<String> inTwo(int[] characters) {
        int size = characters.length, place = size / 2, best = Integer.MAX_VALUE;
        boolean atClause = false;
        for (int i = 1; i < size; i++) {
            boolean space = has("spaces", characters[i]);
            boolean ends = has("wide_clause_ends", characters[i - 1]) || space && has("clause_ends", characters[i - 1]);
            int distance = Math.abs(2 * i - size);
            boolean clause = ends && 2 * distance <= size;
            if (!clause && !space || (clause == atClause ? distance >= best : atClause)) continue;
            place = i;
            best = distance;
            atClause = clause;
        }
        String first = new String(characters, 0, place), second = new String(characters, place, size - place);
        return cut(replaced(first + sentences.get("cut") + second, sentences, "after_cut"), sentences);
    }

    private boolean has(String name, int character) {
        return ((String) sentences.get(name)).indexOf(character) >= 0;
    }

    /** A text with placeholders, and the parts that they stand for. */
    private Protected protect(String text) {
        List<String> parts = new ArrayList<>();
        if (count == 0) return new Protected(text, parts);
        List<String> pieces = cut(replaced(text, placeholders, "rules"), placeholders);
        for (int i = 0; i < pieces.size(); i++) {
            if (i % 2 == 0 || parts.size() >= count) {
                pieces.set(i, replaced(pieces.get(i), placeholders, "other"));
            } else {
                parts.add(pieces.set(i, "⟦" + parts.size() + "⟧"));
            }
        }
        return new Protected(String.join("", pieces), parts);
    }

    /** Whether a text has letters or digits outside of placeholders. */
    private boolean hasWords(String text) {
        String mark = (String) ((List<?>) ((List<?>) placeholders.get("mark")).get(0)).get(0);
        String words = pattern(mark).matcher(text).replaceAll("");
        return !pattern((String) placeholders.get("no_words")).matcher(words).matches();
    }

    /** A translation with its parts in the places of the placeholders; those that it lacks come at its end. */
    private String restored(String text, Protected source) {
        if (source.parts.isEmpty()) return text;
        List<?> touched = (List<?>) placeholders.get("touched");
        for (int i = 0; i < source.parts.size(); i++) {
            String name = "⟦" + i + "⟧";
            boolean before = pattern(touched.get(0) + name).matcher(source.text).find();
            boolean after = pattern(name + touched.get(1)).matcher(source.text).find();
            Object begin = before ? "" : placeholders.get("begin"), end = after ? "" : placeholders.get("end");
            text = text.replace(name, begin + name + end);
        }
        List<String> pieces = cut(replaced(replaced(text, placeholders, "apart"), placeholders, "mark"), placeholders);
        TreeSet<Integer> missing = new TreeSet<>();
        for (int i = 0; i < source.parts.size(); i++) missing.add(i);
        for (int i = 1; i < pieces.size(); i += 2) {
            int number = Integer.parseInt(pieces.get(i));
            pieces.set(i, number < source.parts.size() ? source.parts.get(number) : "");
            missing.remove(number);
        }
        for (int number : missing) pieces.add(" " + source.parts.get(number));
        return String.join("", pieces);
    }

    private static List<String> cut(String text, Map<?, ?> rules) {
        return new ArrayList<>(Arrays.asList(text.split((String) rules.get("cut"), -1)));
    }

    /** A text after some of the rules, one after the other. */
    private static String replaced(String text, Map<?, ?> rules, String name) {
        for (Object rule : (List<?>) rules.get(name)) {
            String replacement = (String) ((List<?>) rule).get(1);
            Matcher matcher = pattern((String) ((List<?>) rule).get(0)).matcher(text);
            StringBuilder found = new StringBuilder();
            int place = 0;
            while (matcher.find()) {
                found.append(text, place, matcher.start());
                for (int i = 0; i < replacement.length(); i++) {
                    char character = replacement.charAt(i);
                    if (character != '\\') found.append(character);
                    else append(found, matcher.group(replacement.charAt(++i) - '0'));
                }
                place = matcher.end();
            }
            text = found.append(text, place, text.length()).toString();
        }
        return text;
    }

    /** Appends a group, if it matched. `Matcher.replaceAll` of Android 10 and older would write "null" for the others. */
    private static void append(StringBuilder found, String group) {
        if (group != null) found.append(group);
    }

    private static Pattern pattern(String expression) {
        return PATTERNS.computeIfAbsent(expression, Pattern::compile);
    }
}
