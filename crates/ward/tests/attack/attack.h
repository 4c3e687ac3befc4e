// What a hostile command tries from inside the sandbox. Each attempt does its worst and says
// nothing of how it went: the tests look at the host instead.

#include <stddef.h>

struct attempt {
    const char *name;
    void (*make)(char **arguments);
};

extern const struct attempt NETWORK[], PROCESSES[], KERNEL[], NAMESPACES[], MEMORY[], SHARED[], FILES[];

// Writes what was found to the file `loot` in the working directory.
void loot(const void *bytes, size_t length);
// The same with all that can be read from a descriptor.
void loot_from(int descriptor);
// Says that the attempt is over and waits, where the test wants to look, until it is let go.
void tried(void);
