/* Translates a line with an exported translator.tflite: text in, text out. It needs nothing but LiteRT's C API.

     cc -O2 translate.c -o translate -ldl
     ./translate libLiteRt.so translator.tflite "A dog runs."

   `libLiteRt.so` is a part of LiteRT's SDK and of the Python package `ai-edge-litert`. It must be of version 2.3: its
   functions are declared here (as in litert/c/), so that the file compiles without its headers. */

#define _POSIX_C_SOURCE 200809L
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate.h"

enum { CPU = 1, READ = 0, WRITE = 1, MOST_TENSORS = 4 }; /* The numbers are LiteRT's. */

typedef void *Handle;
typedef struct { int32_t words[64]; } TensorType; /* LiteRtRankedTensorType, with room to spare. */

/* name, arguments */
#define FUNCTIONS(F) \
    F(CreateEnvironment, (int, const void *, Handle *)) \
    F(CreateModelFromFile, (Handle, const char *, Handle *)) \
    F(CreateOptions, (Handle *)) \
    F(SetOptionsHardwareAccelerators, (Handle, int)) \
    F(CreateCompiledModel, (Handle, Handle, Handle, Handle *)) \
    F(GetNumModelSignatures, (Handle, size_t *)) \
    F(GetModelSignature, (Handle, size_t, Handle *)) \
    F(GetSignatureKey, (Handle, const char **)) \
    F(GetNumSignatureInputs, (Handle, size_t *)) \
    F(GetNumSignatureOutputs, (Handle, size_t *)) \
    F(GetSignatureInputName, (Handle, size_t, const char **)) \
    F(GetSignatureOutputName, (Handle, size_t, const char **)) \
    F(GetSignatureInputTensorByIndex, (Handle, size_t, Handle *)) \
    F(GetSignatureOutputTensorByIndex, (Handle, size_t, Handle *)) \
    F(GetRankedTensorType, (Handle, TensorType *)) \
    F(GetCompiledModelInputBufferRequirements, (Handle, size_t, size_t, Handle *)) \
    F(GetCompiledModelOutputBufferRequirements, (Handle, size_t, size_t, Handle *)) \
    F(CreateManagedTensorBufferFromRequirements, (Handle, const TensorType *, Handle, Handle *)) \
    F(GetTensorBufferPackedSize, (Handle, size_t *)) \
    F(DestroyTensorBuffer, (Handle)) \
    F(DestroyCompiledModel, (Handle)) \
    F(DestroyOptions, (Handle)) \
    F(DestroyModel, (Handle)) \
    F(DestroyEnvironment, (Handle)) \
    F(LockTensorBuffer, (Handle, void **, int)) \
    F(UnlockTensorBuffer, (Handle)) \
    F(RunCompiledModel, (Handle, size_t, size_t, Handle *, size_t, Handle *))

static struct {
#define DECLARE(name, arguments) int (*name) arguments;
    FUNCTIONS(DECLARE)
} litert;

typedef struct { const char *name; Handle buffer; size_t size; } Tensor;

struct Translator {
    Handle environment, model, options, compiled;
    size_t signature, num_inputs, num_outputs;
    Tensor inputs[MOST_TENSORS], outputs[MOST_TENSORS];
};

static const char *load(const char *library) {
    void *opened = dlopen(library, RTLD_NOW);
    if (!opened) return dlerror();
#define FIND(function, arguments) \
    if (!(litert.function = (int (*) arguments)dlsym(opened, "LiteRt" #function))) return "LiteRt" #function " is missing";
    FUNCTIONS(FIND)
    return NULL;
}

#define TRY(call) if (litert.call) return "LiteRT failed: " #call

/* The signature's tensors, and a buffer for each. */
static const char *prepare(Translator *t, Handle signature, int is_output) {
    Tensor *tensors = is_output ? t->outputs : t->inputs;
    size_t count = is_output ? t->num_outputs : t->num_inputs;
    if (count > MOST_TENSORS) return "translate_text has too many tensors";
    for (size_t i = 0; i < count; i++) {
        Handle tensor, needs;
        TensorType type;
        if (is_output) {
            TRY(GetSignatureOutputName(signature, i, &tensors[i].name));
            TRY(GetSignatureOutputTensorByIndex(signature, i, &tensor));
            TRY(GetCompiledModelOutputBufferRequirements(t->compiled, t->signature, i, &needs));
        } else {
            TRY(GetSignatureInputName(signature, i, &tensors[i].name));
            TRY(GetSignatureInputTensorByIndex(signature, i, &tensor));
            TRY(GetCompiledModelInputBufferRequirements(t->compiled, t->signature, i, &needs));
        }
        TRY(GetRankedTensorType(tensor, &type));
        TRY(CreateManagedTensorBufferFromRequirements(t->environment, &type, needs, &tensors[i].buffer));
        TRY(GetTensorBufferPackedSize(tensors[i].buffer, &tensors[i].size));
    }
    return NULL;
}

static const char *prepare_all(Translator *t, const char *file) {
    Handle signature = NULL;
    size_t count = 0;
    TRY(CreateEnvironment(0, NULL, &t->environment));
    if (litert.CreateModelFromFile(t->environment, file, &t->model)) return "the file of the model cannot be read";
    TRY(CreateOptions(&t->options));
    TRY(SetOptionsHardwareAccelerators(t->options, CPU));
    TRY(CreateCompiledModel(t->environment, t->model, t->options, &t->compiled));
    TRY(GetNumModelSignatures(t->model, &count));
    for (t->signature = 0; t->signature < count; t->signature++) {
        const char *key;
        TRY(GetModelSignature(t->model, t->signature, &signature));
        TRY(GetSignatureKey(signature, &key));
        if (strcmp(key, "translate_text") == 0) break;
    }
    if (t->signature == count) return "the model has no signature translate_text: export it again";
    TRY(GetNumSignatureInputs(signature, &t->num_inputs));
    TRY(GetNumSignatureOutputs(signature, &t->num_outputs));
    const char *problem = prepare(t, signature, 0);
    return problem ? problem : prepare(t, signature, 1);
}

const char *translator_open(const char *library, const char *file, Translator **opened) {
    const char *problem = load(library);
    if (problem) return problem;
    Translator *t = calloc(1, sizeof(Translator));
    if (!t) return "no memory";
    problem = prepare_all(t, file);
    if (problem) translator_close(t);
    else *opened = t;
    return problem;
}

void translator_close(Translator *t) {
    for (size_t i = 0; i < MOST_TENSORS; i++) {
        if (t->inputs[i].buffer) litert.DestroyTensorBuffer(t->inputs[i].buffer);
        if (t->outputs[i].buffer) litert.DestroyTensorBuffer(t->outputs[i].buffer);
    }
    if (t->compiled) litert.DestroyCompiledModel(t->compiled);
    if (t->options) litert.DestroyOptions(t->options);
    if (t->model) litert.DestroyModel(t->model);
    if (t->environment) litert.DestroyEnvironment(t->environment);
    free(t);
}

const char *translator_run(Translator *t, const char *text, char *translation, size_t size, int *truncated) {
    Handle inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    void *memory;
    for (size_t i = 0; i < t->num_inputs; i++) { /* `target_language` stays 0: the language of the export. */
        inputs[i] = t->inputs[i].buffer;
        TRY(LockTensorBuffer(inputs[i], &memory, WRITE));
        memset(memory, 0, t->inputs[i].size);
        if (strcmp(t->inputs[i].name, "text") == 0) strncpy(memory, text, t->inputs[i].size); /* Longer texts are cut. */
        TRY(UnlockTensorBuffer(inputs[i]));
    }
    for (size_t i = 0; i < t->num_outputs; i++) outputs[i] = t->outputs[i].buffer;
    TRY(RunCompiledModel(t->compiled, t->signature, t->num_inputs, inputs, t->num_outputs, outputs));
    const char *problem = NULL;
    for (size_t i = 0; i < t->num_outputs; i++) {
        TRY(LockTensorBuffer(outputs[i], &memory, READ));
        if (strcmp(t->outputs[i].name, "translations") == 0) { /* The first is the best. Zeros come after each. */
            size_t length = strnlen(memory, t->outputs[i].size);
            if (length < size) {
                memcpy(translation, memory, length);
                translation[length] = 0;
            } else {
                problem = "the translation needs more room";
            }
        }
        if (strcmp(t->outputs[i].name, "truncated") == 0) *truncated = *(int32_t *)memory;
        TRY(UnlockTensorBuffer(outputs[i]));
    }
    return problem;
}

#ifndef TRANSLATE_LIBRARY
int main(int argc, char **argv) {
    static char translation[1 << 16];
    Translator *translator = NULL;
    int truncated = 0;
    if (argc < 4) {
        fprintf(stderr, "usage: %s LIBRARY MODEL TEXT [TEXT ...]\n", argv[0]);
        return 2;
    }
    const char *problem = translator_open(argv[1], argv[2], &translator);
    for (int i = 3; i < argc && !problem; i++) {
        problem = translator_run(translator, argv[i], translation, sizeof translation, &truncated);
        if (!problem) puts(translation);
        if (!problem && truncated) fprintf(stderr, "text %d is too long: only its beginning was translated\n", i - 2);
    }
    if (problem) fprintf(stderr, "error: %s\n", problem);
    if (translator) translator_close(translator);
    return problem ? 1 : 0;
}
#endif
