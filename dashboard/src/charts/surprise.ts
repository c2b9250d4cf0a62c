/**
 * How surprising a silence is (φ): -log10 of the chance that a beat comes this late, as in `core/detectors/silence.py`. Pure.
 * Computed here as well, because the hub stores how late beats were, but not φ.
 */

/** The complementary error function; the error is less than a millionth of the value (Numerical Recipes, erfcc). */
export function erfc(x: number): number {
  const z = Math.abs(x);
  const t = 1 / (1 + z / 2);
  let sum = 0.17087277;
  for (const part of [-0.82215223, 1.48851587, -1.13520398, 0.27886807, -0.18628806, 0.09678418, 0.37409196, 1.00002368]) {
    sum = part + t * sum;
  }
  const value = t * Math.exp(-z * z - 1.26551223 + t * sum);
  return x >= 0 ? value : 2 - value;
}

/** Larger values are cut here: one chance in 10^20 is "never", and the rest of the chart stays readable. */
export const PHI_MAX = 20;

/** φ of a beat that is `late` seconds late, of an agent whose beats usually are `spread` off. */
export function phi(late: number, spread: number): number {
  const chance = erfc(late / (Math.SQRT2 * spread)) / 2;
  return chance > 0 ? Math.min(PHI_MAX, Math.max(0, -Math.log10(chance))) : PHI_MAX;
}

/** The hub suspects an agent whose silence has a chance of one in ten million. */
export const SUSPICIOUS = 7;

export function phiWords(value: number): string {
  if (value >= SUSPICIOUS) return "suspicious";
  return value >= 3 ? "unusual" : "nothing unusual";
}
