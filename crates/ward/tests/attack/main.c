// `attack [mark=WORD] ATTEMPT …`: with a mark it stays until its standard input ends.

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "attack.h"

static int stays;

void loot(const void *bytes, size_t length) {
    int file = open("loot", O_WRONLY | O_CREAT | O_APPEND, 0666);
    if (file >= 0) {
        ssize_t written = write(file, bytes, length);
        (void)written;
        close(file);
    }
}

void loot_from(int descriptor) {
    char bytes[4096];
    for (int i = 0; i < 64; i++) {
        ssize_t length = read(descriptor, bytes, sizeof bytes);
        if (length <= 0) break;
        loot(bytes, (size_t)length);
    }
}

void tried(void) {
    static int told;
    if (told++) return;
    puts("tried");
    fflush(stdout);
    char byte;
    while (stays && read(0, &byte, 1) > 0) continue;
}

int main(int count, char **words) {
    words++, count--;
    if (count > 0 && strncmp(words[0], "mark=", 5) == 0) {
        stays = 1;
        words++, count--;
    }
    const struct attempt *tables[] = {NETWORK, PROCESSES, KERNEL, NAMESPACES, MEMORY, SHARED, FILES};
    for (size_t t = 0; count > 0 && t < sizeof tables / sizeof *tables; t++)
        for (const struct attempt *a = tables[t]; a->name; a++)
            if (strcmp(a->name, words[0]) == 0) {
                a->make(words + 1);
                tried();
                return 0;
            }
    fputs("attack: no such attempt\n", stderr);
    return 126;
}
