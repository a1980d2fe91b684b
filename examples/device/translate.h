/* A translator in a file: see translate.c. Functions return NULL, or what went wrong. */

#include <stddef.h>

typedef struct Translator Translator;

const char *translator_open(const char *library, const char *file, Translator **opened);
const char *translator_run(Translator *translator, const char *text, char *translation, size_t size, int *truncated);
