import java.nio.charset.StandardCharsets;

/**
 * Translates lines with an exported translator.tflite from Java: translate.c, called through JNI.
 *
 * <pre>
 *   javac Translate.java
 *   cc -O2 -shared -fPIC -DTRANSLATE_LIBRARY -I$JAVA_HOME/include -I$JAVA_HOME/include/linux \
 *       translate.c translate_jni.c -o libtranslate.so -ldl
 *   java -Djava.library.path=. Translate libLiteRt.so translator.tflite "A dog runs."
 * </pre>
 */
public final class Translate implements AutoCloseable {
    static {
        System.loadLibrary("translate");
    }

    private final long translator;

    /** Opens `translator.tflite`; `library` is the path of libLiteRt.so. */
    public Translate(String library, String model) {
        translator = open(bytes(library), bytes(model));
    }

    /** The translation of a sentence, or null if it is too long for the model. Texts.java translates whole texts. */
    public synchronized String translate(String text) {
        byte[] translation = run(translator, bytes(text));
        return translation == null ? null : new String(translation, StandardCharsets.UTF_8);
    }

    /** Frees the model. The object must not be used any more. */
    @Override
    public void close() {
        close(translator);
    }

    /** UTF-8, ended by a zero, as C takes it. JNI's own strings are not UTF-8 outside of the basic plane. */
    private static byte[] bytes(String text) {
        return (text + "\0").getBytes(StandardCharsets.UTF_8);
    }

    private static native long open(byte[] library, byte[] model);

    private static native byte[] run(long translator, byte[] text);

    private static native void close(long translator);

    public static void main(String[] arguments) throws Exception {
        if (arguments.length < 3) {
            System.err.println("usage: Translate LIBRARY MODEL TEXT [TEXT ...]");
            System.exit(2);
        }
        try (Translate translator = new Translate(arguments[0], arguments[1])) {
            for (int i = 2; i < arguments.length; i++) {
                String translation = translator.translate(arguments[i]);
                if (translation == null) throw new IllegalArgumentException("text " + (i - 1) + " is too long");
                // Not `println`: it would write in the encoding of the machine.
                System.out.write((translation + "\n").getBytes(StandardCharsets.UTF_8));
            }
        }
        System.out.flush();
    }
}
