/* Resamples frames: for each it takes a buffer of 16 MB, writes one value into each 64 bytes of it, adds up a few, and gives the buffer back. Says how many a second. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

int main(void)
{
    const size_t size = 16 << 20;
    unsigned long sum = 0;
    double began = now();
    for (long frames = 1, since = 0;; frames++) {
        unsigned char *frame = malloc(size);
        if (!frame)
            return 1;
        for (size_t i = 0; i < size; i += 64)
            frame[i] = (unsigned char)(i + frames);
        for (size_t i = 0; i < size; i += 4096)
            sum += frame[i];
        free(frame);
        if (now() - began >= 1) {
            printf("%.0f frames/s (%lu)\n", (frames - since) / (now() - began), sum);
            fflush(stdout);
            since = frames;
            began = now();
        }
    }
}
