"""One model for several directions: the tag says into which language, in Python and in every export."""

import numpy as np
import pytest
from texts import write
from trainings import made_phrasebook, phrases

from keras_transformer.data.corpora import DataError, load_corpus
from keras_transformer.text.tokenizer import Tokenizer, TokenizerError
from keras_transformer.training.config import ConfigError, RunConfig

# A user may write a tag: it stays a text.
from keras_transformer.training.sections import DataConfig

# A user may write a tag: it stays a text.
WITH_TAGS = [">>de<< The dog.", "The >>en<< dog >>de<<", ">>fr<<", "a>>de<<b", ""]


# The vocabulary.


@pytest.mark.parametrize("kind", ["unigram", "bpe"])
def test_no_text_contains_a_tag(kind, tmp_path):
    texts = [text for pair in phrases()[:200] for text in pair] + [">>de<< x >>zh_TW<<"] * 50
    Tokenizer.train(texts, 300, kind, num_placeholders=2, languages=["de", "zh_TW"]).save(tmp_path / "tokenizer")
    tokenizer = Tokenizer.load(tmp_path / "tokenizer")
    assert tokenizer.languages == tokenizer.hidden_languages == {"de": 6, "zh_TW": 7}
    assert tokenizer.pieces([6, 7]) == [">>de<<", ">>zh_TW<<"] and tokenizer.num_placeholders == 2
    assert (tokenizer.tag("de"), tokenizer.tag(None)) == ([6], [])
    ids = tokenizer.tokenize(WITH_TAGS)
    assert not {6, 7} & {i for row in ids for i in row}
    assert tokenizer.graph_tokenize(WITH_TAGS).to_list() == ids
    plain = tokenizer.tokenize(["The dog"])[0]
    assert tokenizer.detokenize([[6, *plain], [7]]) == ["The dog", ""]
    assert [x.decode() for x in tokenizer.graph_detokenize(np.array([[6, *plain]], "int32")).numpy()] == ["The dog"]
    assert tokenizer.vocabulary_size == 300


def test_what_cannot_have_tags_is_an_error():
    with pytest.raises(TokenizerError, match="WordPiece has no language tags"):
        Tokenizer.train(["a dog"], kind="wordpiece", languages=["de"])
    tokenizer = Tokenizer.train([text for pair in phrases()[:200] for text in pair], 200, languages=["de"])
    with pytest.raises(ValueError, match=r"`target_language` must be one of .* Received: 'fr'. The model has: de\."):
        tokenizer.tag("fr")


def test_a_data_set_has_its_directions(tmp_path):
    data = RunConfig.make({"directions": ["de-en", "en-de"]}).data
    corpus = load_corpus(data)
    splits = made_phrasebook()
    for texts, pairs in zip(corpus[:3], splits.values(), strict=True):
        assert [text.direction for text in texts] == ["de-en", "en-de"]
        assert [text.target_language for text in texts] == ["en", "de"]
        assert texts[0].pairs == [(de, en) for en, de in pairs] and texts[1].pairs == pairs
    assert data.target_languages() == ["en", "de"] and data.language_of_sources() is None
    for split in ("train", "val", "test_2016_flickr"):
        for language in ("en", "de", "fr"):
            write(tmp_path / f"{split}.{language}", f"{split} {language}\n")
    data = DataConfig(dataset="multi30k", data_dir=str(tmp_path), directions=("en-fr", "en-de"))
    assert [text.pairs for text in load_corpus(data).train] == [[("train en", f"train {x}")] for x in ("fr", "de")]
    assert data.language_of_sources() == "en"
    with pytest.raises(DataError, match=r"The phrasebook has the directions en-de and de-en. Received: en-fr"):
        load_corpus(DataConfig(target_language="fr"))
    own = [[str(tmp_path / f"val.{language}") for language in ("en", other)] + ["name=y"] for other in ("fr", "de")]
    with pytest.raises(DataError, match=r"Each --val text needs a name of its own.* Received twice: y"):
        load_corpus(RunConfig.make({"train": own[:1], "val": own}).data)
    with pytest.raises(DataError, match=r"The phrasebook needs no files. Received: --data-dir .*/x"):
        load_corpus(DataConfig(data_dir="x"))
    with pytest.raises(DataError, match="--variant is for --dataset multi30k"):
        load_corpus(DataConfig(variant="lc.norm.tok"))
    with pytest.raises(DataError, match="--test-set is for --dataset multi30k"):
        load_corpus(DataConfig(dataset="libreoffice", test_set="test_2017_flickr"))
    with pytest.raises(DataError, match=r"The phrasebook has the directions en-de and de-en. Received: en-fr"):
        load_corpus(DataConfig(directions=("en-fr",)))


@pytest.fixture
def own(tmp_path):
    return [str(write(tmp_path / name, f"{name}\n")) for name in ("a.en", "a.de")]


def entry(paths, direction=None, **more):
    return {"source": paths[0], "target": paths[1], "name": None, "direction": direction, **more}


@pytest.mark.parametrize(
    ("train", "val", "others", "message"),
    [
        ("en-de", None, {}, "every text needs its direction.*Received none for: .*a.en, .*a.de"),
        (None, None, {"directions": ["en-de"]}, "every text needs its direction"),
        (
            "en-de",
            "en-de",
            {"directions": ["en-de"]},
            "so --directions says nothing more. Received: --directions en-de",
        ),
        ("en-de", "de-en", {}, "learns only the target languages of its training texts, de. .* direction=de-en"),
        ("en-de", "en-de", {"general": True}, "General text has no direction"),
    ],
)
def test_directions_that_do_not_go_together_are_an_error(own, train, val, others, message):
    settings = {"train": [entry(own, train, weight=1.0)], "val": [entry(own, val)], **others}
    if settings.pop("general", None):
        settings |= {"general": [own[:2]]}
    with pytest.raises(DataError, match=message):
        load_corpus(RunConfig.make(settings).data)


@pytest.mark.parametrize("directions", [["en"], ["en-de", "en-de"], ["en-de-fr"], ["e n-de"], [1], ["en-<<"]])
def test_directions_are_pairs_of_codes(directions):
    with pytest.raises(ConfigError, match="`directions` must be different pairs of language codes, such as en-de"):
        RunConfig.make({"directions": directions})


def test_the_direction_of_a_text_stays_when_a_run_is_resumed(own):
    config = RunConfig.make({"train": [entry(own, "en-de")], "val": [entry(own, "en-de")]})
    with pytest.raises(ConfigError, match="`train` must stay as the run began"):
        config.resumed({"train": [entry(own, "de-en", weight=1.0)]})
