/* A translator in a file: see translate.c. Functions return NULL, or what went wrong, a text that is never freed. */

#ifndef TRANSLATE_H
#define TRANSLATE_H

#include <stddef.h>

typedef struct Translator Translator;

/* Opens translator.tflite. `library` is the path of libLiteRt.so. */
const char *translator_open(const char *library, const char *file, Translator **opened);

/* Writes the best translation of a text, both UTF-8 and ended by a zero, into `size` bytes. One call at a time. */
const char *translator_run(Translator *translator, const char *text, char *translation, size_t size, int *truncated);

void translator_close(Translator *translator);

#endif
