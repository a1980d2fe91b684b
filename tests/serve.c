/* Translates with an exported SavedModel through TensorFlow's C API alone: no Python in the process.

   serve MODEL_DIR OPS_LIBRARY INPUT OUTPUT TEXT...
       INPUT and OUTPUT are tensor names of the signature, such as translate_text:0. One translation a line. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tensorflow/c/c_api.h"
#include "tensorflow/c/tf_tstring.h"

static TF_Status* status;

static void check(const char* what) {
  if (TF_GetCode(status) == TF_OK) return;
  fprintf(stderr, "%s: %s\n", what, TF_Message(status));
  exit(1);
}

static TF_Output tensor(TF_Graph* graph, const char* name) {
  char operation[256];
  snprintf(operation, sizeof operation, "%s", name);
  char* colon = strrchr(operation, ':');
  TF_Output output = {NULL, colon ? atoi(colon + 1) : 0};
  if (colon) *colon = '\0';
  output.oper = TF_GraphOperationByName(graph, operation);
  if (!output.oper) {
    fprintf(stderr, "%s: no such tensor\n", name);
    exit(1);
  }
  return output;
}

static void release(void* data, size_t length, void* unused) {
  TF_TString* strings = data;
  for (size_t i = 0; i < length / sizeof(TF_TString); i++) TF_TString_Dealloc(&strings[i]);
  free(data);
}

int main(int argc, char** argv) {
  if (argc < 6) {
    fprintf(stderr, "usage: %s MODEL_DIR OPS_LIBRARY INPUT OUTPUT TEXT...\n", argv[0]);
    return 2;
  }
  status = TF_NewStatus();
  TF_LoadLibrary(argv[2], status);
  check("loading the tokenizer's operations");
  const char* tags[] = {"serve"};
  TF_Graph* graph = TF_NewGraph();
  TF_SessionOptions* options = TF_NewSessionOptions();
  TF_Session* session = TF_LoadSessionFromSavedModel(options, NULL, argv[1], tags, 1, graph, NULL, status);
  check("loading the model");

  int64_t count = argc - 5;
  size_t length = count * sizeof(TF_TString);
  TF_TString* strings = calloc(count, sizeof(TF_TString));
  for (int64_t i = 0; i < count; i++) {
    TF_TString_Init(&strings[i]);
    TF_TString_Copy(&strings[i], argv[i + 5], strlen(argv[i + 5]));
  }
  TF_Tensor* text = TF_NewTensor(TF_STRING, &count, 1, strings, length, release, NULL);
  TF_Tensor* translation = NULL;
  TF_Output input = tensor(graph, argv[3]), output = tensor(graph, argv[4]);
  TF_SessionRun(session, NULL, &input, &text, 1, &output, &translation, 1, NULL, 0, NULL, status);
  check("translating");
  const TF_TString* found = TF_TensorData(translation);
  for (int64_t i = 0; i < TF_Dim(translation, 0); i++)
    printf("%.*s\n", (int)TF_TString_GetSize(&found[i]), TF_TString_GetDataPointer(&found[i]));

  TF_DeleteTensor(translation);
  TF_DeleteTensor(text);
  TF_CloseSession(session, status);
  TF_DeleteSession(session, status);
  TF_DeleteSessionOptions(options);
  TF_DeleteGraph(graph);
  TF_DeleteStatus(status);
  return 0;
}
