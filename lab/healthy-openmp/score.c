/* Scores a customer: one long loop a round, shared out among OpenMP's threads. */
double score(int rounds) {
    double total = 0;
    for (int r = 0; r < rounds / 50; r++) {
        double sum = 0;
#pragma omp parallel for reduction(+ : sum)
        for (int i = 1; i < 400000; i++) {
            sum += 1.0 / (i + r);
        }
        total += sum;
    }
    return total;
}
