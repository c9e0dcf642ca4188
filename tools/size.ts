/** `npm run size`: prints the compressed size of the Worker and of each entry of the package, by package and folder. */
import { writeFile } from 'node:fs/promises'
import { readScriptOptions } from '../cli/options.ts'
import { writeBetween } from './markers.ts'
import { build } from './package/pack.ts'
import { bundleOf } from './size/bundle.ts'
import { growth, kiB, type Recorded, readRecorded, recordedFile } from './size/check.ts'
import { entryLimits, workerLimit } from './size/limits.ts'
import { groupOf, gzipSize, sharesOf } from './size/shares.ts'
import { treemap } from './size/treemap.ts'

const USAGE = `Builds the package, and prints the size of the Worker and of each entry: minified and compressed, in KiB, by
package and folder. The share of a part is what the bundle would lose without it.

  npm run size -- [options]

  --only WORD  only bundles whose name contains WORD
  --modules    one line for each module
  --svg FILE   also draw the modules of the last bundle
  --write      record the figures in tools/size/recorded.json, and write those that README.md shows
  --help       show this text`

const readme = new URL('../README.md', import.meta.url)

/** The bundles that README.md names, and its words for them. */
const shown = new Map([
  ['sluice/limits', '`limits`'],
  [
    'limits of sluice/built/limits',
    '`limits` [built](docs/guides/limit-anything.md#build-the-limits)',
  ],
  ['rateLimiter of sluice', 'the middleware'],
  ['createGateway of sluice', 'the gateway'],
  [
    'rateLimiter of sluice/built, one policy',
    'the middleware [built](docs/reference/cli.md#npx-sluice-build)',
  ],
  ['createGateway of sluice/built', 'the gateway built'],
])

const options = readScriptOptions(
  {
    only: { type: 'string' },
    modules: { type: 'boolean' },
    svg: { type: 'string' },
    write: { type: 'boolean' },
  },
  USAGE,
)
if (options) {
  await build()
  const recorded: Recorded = await readRecorded()
  const sizes: string[] = []
  const chosen = [workerLimit, ...entryLimits].filter(({ name }) =>
    name.includes(options.only ?? ''),
  )
  for (const limit of chosen) {
    const { name, maxKiB } = limit
    const script = await bundleOf(limit)
    const groups = sharesOf(script, groupOf)
    const words = shown.get(name)
    if (words) sizes.push(`${words} ${kiB(gzipSize(script.code))} KiB`)
    console.log(`\n${name}: ${kiB(gzipSize(script.code))} of ${maxKiB} KiB`)
    for (const share of options.modules ? sharesOf(script) : groups)
      console.log(`${kiB(share.gzip).padStart(7)}  ${share.name}`)
    const grown = growth(groups, recorded[name])
    if (grown.length > 0) console.log(`  grown since the record: ${grown.join(', ')}`)
    if (options.svg) await writeFile(options.svg, treemap(sharesOf(script)))
    recorded[name] = Object.fromEntries(groups.map(({ name, gzip }) => [name, gzip]))
  }
  if (options.write) {
    await writeFile(recordedFile, `${JSON.stringify(recorded, null, 2)}\n`)
    if (sizes.length === shown.size)
      await writeBetween(readme, 'sizes', `Sizes, gzip, without Hono: ${sizes.join(', ')}.`)
  }
}
