/** The units of a share of the quota, rounded up; of the burst for a token bucket. */
export function floorUnits(
  { algorithm, limit, burst }: { algorithm: string; limit: number; burst: number },
  share: number,
): number {
  const units = share * (algorithm === 'token-bucket' ? burst : limit)
  return Math.ceil(Number(units.toPrecision(15))) // 0.55 * 100 is 55.00000000000001
}
