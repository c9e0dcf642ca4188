/** `npm run size`: prints the compressed size of the Worker and of each entry of the package, by package and folder. */
import { writeFile } from 'node:fs/promises'
import { readScriptOptions } from '../cli/options.ts'
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
  --write      record the figures in tools/size/recorded.json
  --help       show this text`

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
  const chosen = [workerLimit, ...entryLimits].filter(({ name }) =>
    name.includes(options.only ?? ''),
  )
  for (const limit of chosen) {
    const { name, maxKiB } = limit
    const script = await bundleOf(limit)
    const groups = sharesOf(script, groupOf)
    console.log(`\n${name}: ${kiB(gzipSize(script.code))} of ${maxKiB} KiB`)
    for (const share of options.modules ? sharesOf(script) : groups)
      console.log(`${kiB(share.gzip).padStart(7)}  ${share.name}`)
    const grown = growth(groups, recorded[name])
    if (grown.length > 0) console.log(`  grown since the record: ${grown.join(', ')}`)
    if (options.svg) await writeFile(options.svg, treemap(sharesOf(script)))
    recorded[name] = Object.fromEntries(groups.map(({ name, gzip }) => [name, gzip]))
  }
  if (options.write) await writeFile(recordedFile, `${JSON.stringify(recorded, null, 2)}\n`)
}
