/* Translates a line with an exported translator.tflite: text in, text out. It needs nothing but LiteRT's C API.

     cc -O2 translate.c -o translate -ldl
     ./translate libLiteRt.so translator.tflite "A dog runs."

   `libLiteRt.so` is a part of LiteRT's SDK and of the Python package `ai-edge-litert`. The functions are declared here
   as in LiteRT 2.3 (litert/c/), so that the file compiles without its headers. */

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "translate.h"

enum { CPU = 1, READ = 0, WRITE = 1, MOST_TENSORS = 4 };

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
    F(LockTensorBuffer, (Handle, void **, int)) \
    F(UnlockTensorBuffer, (Handle)) \
    F(RunCompiledModel, (Handle, size_t, size_t, Handle *, size_t, Handle *))

static struct {
#define DECLARE(name, arguments) int (*name) arguments;
    FUNCTIONS(DECLARE)
} litert;

typedef struct { const char *name; Handle buffer; size_t size; } Tensor;

struct Translator {
    Handle environment, compiled;
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

#define TRY(call) if (litert.call) return #call " failed"

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

const char *translator_open(const char *library, const char *file, Translator **opened) {
    const char *problem = load(library);
    if (problem) return problem;
    Translator *t = *opened = calloc(1, sizeof(Translator));
    Handle model, options, signature = NULL;
    size_t count = 0;
    TRY(CreateEnvironment(0, NULL, &t->environment));
    TRY(CreateModelFromFile(t->environment, file, &model));
    TRY(CreateOptions(&options));
    TRY(SetOptionsHardwareAccelerators(options, CPU));
    TRY(CreateCompiledModel(t->environment, model, options, &t->compiled));
    TRY(GetNumModelSignatures(model, &count));
    for (t->signature = 0; t->signature < count; t->signature++) {
        const char *key;
        TRY(GetModelSignature(model, t->signature, &signature));
        TRY(GetSignatureKey(signature, &key));
        if (strcmp(key, "translate_text") == 0) break;
    }
    if (t->signature == count) return "the model has no signature translate_text: export it again";
    TRY(GetNumSignatureInputs(signature, &t->num_inputs));
    TRY(GetNumSignatureOutputs(signature, &t->num_outputs));
    problem = prepare(t, signature, 0);
    return problem ? problem : prepare(t, signature, 1);
}

const char *translator_run(Translator *t, const char *text, char *translation, size_t size, int *truncated) {
    Handle inputs[MOST_TENSORS], outputs[MOST_TENSORS];
    void *memory;
    for (size_t i = 0; i < t->num_inputs; i++) {
        inputs[i] = t->inputs[i].buffer;
        TRY(LockTensorBuffer(inputs[i], &memory, WRITE));
        memset(memory, 0, t->inputs[i].size);
        if (strcmp(t->inputs[i].name, "text") == 0) strncpy(memory, text, t->inputs[i].size); /* Longer texts are cut. */
        TRY(UnlockTensorBuffer(inputs[i]));
    }
    for (size_t i = 0; i < t->num_outputs; i++) outputs[i] = t->outputs[i].buffer;
    TRY(RunCompiledModel(t->compiled, t->signature, t->num_inputs, inputs, t->num_outputs, outputs));
    for (size_t i = 0; i < t->num_outputs; i++) {
        TRY(LockTensorBuffer(outputs[i], &memory, READ));
        if (strcmp(t->outputs[i].name, "translations") == 0) {
            if (t->outputs[i].size >= size) return "the translation needs more room";
            memcpy(translation, memory, t->outputs[i].size);
            translation[t->outputs[i].size] = 0;
        }
        if (strcmp(t->outputs[i].name, "truncated") == 0) *truncated = *(int32_t *)memory;
        TRY(UnlockTensorBuffer(outputs[i]));
    }
    return NULL;
}

#ifndef TRANSLATE_LIBRARY
int main(int argc, char **argv) {
    static char translation[1 << 16];
    Translator *translator;
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
    return problem ? 1 : 0;
}
#endif
