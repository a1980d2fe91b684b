/**
 * Translates with an exported translator.tflite on Android: text in, text out, no tokenizer beside it.
 *
 *     implementation("com.google.ai.edge.litert:litert:2.1.0")   // in build.gradle.kts, or a newer version
 *
 *     private val translator by lazy { Translator(file) }        // a file, not an asset: see docs/deployment.md
 *     translator.translate("A dog runs.").text                   // not on the main thread
 */

import java.io.File
import java.nio.ByteBuffer
import java.nio.ByteOrder
import org.tensorflow.lite.Interpreter
import org.tensorflow.lite.Tensor

class Translator(model: File) : AutoCloseable {
    /** @property truncated whether the text was too long, so that only its beginning is translated. */
    data class Translation(val text: String, val score: Float, val truncated: Boolean)

    private val interpreter = Interpreter(model, Interpreter.Options().setNumThreads(1))
    private val inputs = interpreter.getSignatureInputs(SIGNATURE).associateWith {
        room(interpreter.getInputTensorFromSignature(it, SIGNATURE))
    }
    private val outputs = interpreter.getSignatureOutputs(SIGNATURE).associateWith {
        room(interpreter.getOutputTensorFromSignature(it, SIGNATURE))
    }
    private val longest = interpreter.getOutputTensorFromSignature("translations", SIGNATURE).shape()[1]

    /** The best translation of a sentence. It takes some milliseconds or more, so not on the main thread. */
    @Synchronized
    fun translate(sentence: String, targetLanguage: Int = 0): Translation {
        val text = inputs.getValue("text").zeroed()
        val bytes = sentence.toByteArray()
        text.put(bytes, 0, minOf(bytes.size, text.capacity()))
        // A tag from `languages` in translator.json; 0 is the language of the export.
        inputs["target_language"]?.putInt(0, targetLanguage)
        outputs.values.forEach { it.rewind() }
        interpreter.runSignature(inputs.onEach { it.value.rewind() }, outputs, SIGNATURE)
        val best = ByteArray(longest)
        outputs.getValue("translations").apply { rewind() }.get(best)
        val score = outputs.getValue("scores").getFloat(0)
        val end = best.indexOf(0).takeIf { it >= 0 } ?: best.size
        return Translation(String(best, 0, end), score, outputs.getValue("truncated").getInt(0) != 0)
    }

    override fun close() = interpreter.close()

    private fun room(tensor: Tensor) = ByteBuffer.allocateDirect(tensor.numBytes()).order(ByteOrder.nativeOrder())

    private fun ByteBuffer.zeroed() = apply {
        rewind()
        put(ByteArray(capacity()))
        rewind()
    }

    private companion object {
        const val SIGNATURE = "translate_text"
    }
}
