import java.util.ArrayList;
import java.util.LinkedList;
import java.util.List;

/** Smooths 40,000 readings of a meter, again and again; says how long each round took. */
class Smooth {
    public static void main(String[] args) {
        for (int day = 0; ; day++) {
            long began = System.nanoTime();
            double last = smooth(readings(day));
            System.out.println("40,000 readings in " + (System.nanoTime() - began) / 1_000_000 + " ms, at last " + last);
        }
    }

    static List<Double> readings(int day) {
        List<Double> readings = new {{.list}}<>();
        for (int i = 0; i < 40_000; i++) {
            readings.add(Math.sin(i * 0.01 + day));
        }
        return readings;
    }

    static double smooth(List<Double> readings) {
        double level = 0;
        for (int i = 0; i < readings.size(); i++) {
            level = 0.9 * level + 0.1 * readings.get(i);
        }
        return level;
    }
}
