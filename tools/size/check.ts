import { readFile } from 'node:fs/promises'
import { bundleOf } from './bundle.ts'
import type { SizeLimit } from './limits.ts'
import { groupOf, gzipSize, type Share, sharesOf } from './shares.ts'

/** The compressed bytes of each package and folder, by bundle. `npm run size -- --write` writes the file. */
export type Recorded = Record<string, Record<string, number>>
export const recordedFile = new URL('recorded.json', import.meta.url)
export const readRecorded = async (): Promise<Recorded> =>
  JSON.parse(await readFile(recordedFile, 'utf8'))

export const kiB = (bytes: number): string => (bytes / 1024).toFixed(1)

/** The parts that have grown by at least 0.1 KiB, as text. */
export const growth = (shares: Share[], before: Record<string, number> = {}): string[] =>
  shares
    .map(({ name, gzip }) => ({ name, grown: gzip - (before[name] ?? 0) }))
    .filter(({ grown }) => grown >= 102)
    .sort((one, other) => other.grown - one.grown)
    .map(({ name, grown }) => `${name} +${kiB(grown)} KiB`)

/** The sizes of bundles as text, and one line for each that is too large, with the parts that have grown. */
export async function checkSizes(
  limits: SizeLimit[],
): Promise<{ sizes: string[]; problems: string[] }> {
  const recorded = await readRecorded()
  const sizes: string[] = []
  const problems: string[] = []
  for (const limit of limits) {
    const { name, maxKiB } = limit
    const script = await bundleOf(limit)
    const size = gzipSize(script.code)
    sizes.push(`${name} ${kiB(size)} of ${maxKiB} KiB`)
    if (size <= maxKiB * 1024) continue
    const grown = growth(sharesOf(script, groupOf), recorded[name])
    problems.push(
      `${name} has ${kiB(size)} KiB, minified and compressed; the limit in tools/size/limits.ts is ${maxKiB} KiB. Grown since tools/size/recorded.json: ${grown.join(', ') || 'no part by itself'}.`,
    )
  }
  return { sizes, problems }
}
