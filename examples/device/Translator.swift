// Translates with an exported translator.tflite on iOS: text in, text out, no tokenizer beside it.
//
//     pod "TensorFlowLiteSwift"   # in the Podfile
//
//     print(try Translator(model: path).translate("A dog runs.").text)

import Foundation
import TensorFlowLite

final class Translator {
    struct Translation {
        let text: String
        let score: Float
        /// Whether the text was too long, so that only its beginning is translated.
        let truncated: Bool
    }

    private let runner: SignatureRunner
    private let lock = NSLock()

    init(model path: String) throws {
        var options = Interpreter.Options()
        options.threadCount = 1
        runner = try Interpreter(modelPath: path, options: options).signatureRunner(with: "translate_text")
    }

    /// The best translation of a sentence. It takes some milliseconds or more, so not on the main thread.
    ///
    /// - Parameter targetLanguage: a tag from `languages` in translator.json; 0 is the language of the export.
    func translate(_ sentence: String, targetLanguage: Int32 = 0) throws -> Translation {
        lock.lock()
        defer { lock.unlock() }
        var text = Data(count: try runner.input(named: "text").data.count)
        let bytes = Data(sentence.utf8.prefix(text.count))
        text.replaceSubrange(0..<bytes.count, with: bytes)
        var inputs = ["text": text]
        if runner.inputs.contains("target_language") {
            inputs["target_language"] = withUnsafeBytes(of: targetLanguage) { Data($0) }
        }
        try runner.invoke(with: inputs)
        let translations = try runner.output(named: "translations")
        let best = translations.data.prefix(translations.shape.dimensions[1]).prefix { $0 != 0 }
        return Translation(
            text: String(decoding: best, as: UTF8.self),
            score: try first("scores"),
            truncated: try first("truncated") as Int32 != 0
        )
    }

    private func first<Value>(_ output: String) throws -> Value {
        try runner.output(named: output).data.withUnsafeBytes { $0.loadUnaligned(as: Value.self) }
    }
}
