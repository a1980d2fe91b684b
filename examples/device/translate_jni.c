/* translate.c for Translate.java. */

#include <jni.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "translate.h"

static void throw_error(JNIEnv *env, const char *problem) {
    (*env)->ThrowNew(env, (*env)->FindClass(env, "java/lang/IllegalStateException"), problem);
}

JNIEXPORT jlong JNICALL Java_Translate_open(JNIEnv *env, jclass class, jbyteArray library, jbyteArray model) {
    (void)class;
    jbyte *path = (*env)->GetByteArrayElements(env, library, NULL), *file = (*env)->GetByteArrayElements(env, model, NULL);
    Translator *translator = NULL;
    const char *problem = translator_open((const char *)path, (const char *)file, &translator);
    (*env)->ReleaseByteArrayElements(env, library, path, JNI_ABORT);
    (*env)->ReleaseByteArrayElements(env, model, file, JNI_ABORT);
    if (problem) throw_error(env, problem);
    return (jlong)(intptr_t)translator;
}

JNIEXPORT jbyteArray JNICALL Java_Translate_run(JNIEnv *env, jclass class, jlong translator, jbyteArray text) {
    (void)class;
    enum { SIZE = 1 << 16 };
    char *translation = malloc(SIZE);
    if (!translation) {
        throw_error(env, "there is no memory for a translation");
        return NULL;
    }
    jbyte *bytes = (*env)->GetByteArrayElements(env, text, NULL);
    int truncated = 0;
    const char *problem =
        translator_run((Translator *)(intptr_t)translator, (const char *)bytes, translation, SIZE, &truncated);
    (*env)->ReleaseByteArrayElements(env, text, bytes, JNI_ABORT);
    jbyteArray result = NULL; /* Of a text that is too long, only the beginning would be translated. */
    if (problem) {
        throw_error(env, problem);
    } else if (!truncated) {
        jsize size = (jsize)strlen(translation);
        result = (*env)->NewByteArray(env, size);
        if (result) (*env)->SetByteArrayRegion(env, result, 0, size, (const jbyte *)translation);
    }
    free(translation);
    return result;
}

JNIEXPORT void JNICALL Java_Translate_close(JNIEnv *env, jclass class, jlong translator) {
    (void)env, (void)class;
    translator_close((Translator *)(intptr_t)translator);
}
