/** `npm run picture`: draws docs/explanation/algorithms.svg, the same traffic under five algorithms, decided by the real script. */
import { writeFile } from 'node:fs/promises'
import type { PolicyOptions } from '../../src/core/config/options.ts'
import { parseConfig } from '../../src/core/config/parse.ts'
import { defaultFields } from '../../src/features/defaults.ts'
import { mostWithin, play } from './picture/play.ts'
import { draw, type PictureRow } from './picture/svg.ts'
import { LENGTH_MS, PHASES, TRAFFIC } from './picture/traffic.ts'
import { type BenchServer, openServer } from './server.ts'

const FILE = new URL('../../docs/explanation/algorithms.svg', import.meta.url)
const LIMIT = 10

type Shown = Pick<PictureRow, 'title' | 'subtitle'> & Partial<PolicyOptions>

const ALGORITHMS: Shown[] = [
  {
    title: 'Fixed window',
    subtitle: 'aligned to the clock',
    algorithm: 'fixed-window',
    align: 'clock',
  },
  { title: 'Sliding window', subtitle: 'two counters', algorithm: 'sliding-window' },
  { title: 'Sliding log', subtitle: 'every request', algorithm: 'sliding-log' },
  { title: 'Token bucket', subtitle: 'burst 10', algorithm: 'token-bucket', burst: 10 },
  { title: 'GCRA', subtitle: 'burst 3', algorithm: 'gcra', burst: 3 },
]

/** Draws the picture. The output is the same in each run, since the times are passed to the script. */
export async function drawPicture(server: BenchServer): Promise<string> {
  const limits: PictureRow[] = []
  for (const { title, subtitle, ...options } of ALGORITHMS) {
    const { policies } = parseConfig(
      {
        policies: [{ name: 'picture', limit: LIMIT, window: '10s', ...options }],
      },
      defaultFields,
    )
    const played = await play(server, policies[0]!, TRAFFIC, LENGTH_MS)
    limits.push({ title, subtitle, played, most: mostWithin(10_000, played.admitted) })
  }
  return draw({ limits, phases: PHASES, lengthMs: LENGTH_MS, full: LIMIT })
}

if (import.meta.main) {
  const server = await openServer()
  try {
    await writeFile(FILE, await drawPicture(server))
  } finally {
    await server.stop()
  }
}
