#!/bin/sh
# A class with 1,000 rules for prices, as generators write them.
echo 'class Rules {'
for n in $(seq 1000); do
    cat <<END
    static int rule$n(int[] a) {
        int s = $n;
        for (int i = 0; i < a.length; i++) {
            s = (s ^ a[i]) * ($n | 1) + (s >>> (i & 7));
            if ((s & 15) == $((n % 16))) {
                s += a[(i * $n) % a.length];
            }
        }
        return s;
    }
END
done
echo '    static int all(int[] a) {'
echo '        int s = 0;'
for n in $(seq 1000); do
    echo "        s += rule$n(a);"
done
echo '        return s;'
echo '    }'
echo '}'
