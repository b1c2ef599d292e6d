package reason

// nativeCalls are none: this architecture has only what all have.
var nativeCalls map[uint8][]int
