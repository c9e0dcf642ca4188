/** `npm run check:package`: builds and packs the package, and checks what would be published. Exits with 1 if a check fails. */
import { readFile, rm, writeFile } from 'node:fs/promises'
import { fileURLToPath } from 'node:url'
import { checkPackage, createPackageFromTarballData } from '@arethetypeswrong/core'
import { publint } from 'publint'
import { formatMessage } from 'publint/utils'
import { readScriptOptions } from '../../cli/options.ts'
import { checkSizes } from '../size/check.ts'
import { entryLimits } from '../size/limits.ts'
import { apiReport } from './api-report.ts'
import { changedLines } from './changed-lines.ts'
import { unexpectedFiles } from './files.ts'
import { readEntries, readManifest } from './manifest.ts'
import { build, pack } from './pack.ts'

const USAGE = `Builds and packs the package, and checks what would be published: its files and size, package.json (publint), the types of
each entry (attw), the size of each entry, and the public API against test/package/api.md. Exits with 1 if a check fails.

  npm run check:package -- [options]

  --write  update test/package/api.md
  --help   show this text`

const report = fileURLToPath(new URL('../../test/package/api.md', import.meta.url))

/** The most bytes that an installation downloads of this package: its code, and its documentation as Markdown. */
const MAX_TARBALL = (760 + 190) * 1024

const checkTarball = ({ length }: Uint8Array): string[] =>
  length <= MAX_TARBALL
    ? []
    : [
        `The tarball has ${Math.ceil(length / 1024)} KiB; at most ${MAX_TARBALL / 1024} are allowed. npm pack --dry-run lists its files.`,
      ]

/** The resolution modes of projects that can import ES modules. */
const modes = ['node16-esm', 'bundler']

async function checkManifest(tarball: ArrayBuffer): Promise<string[]> {
  const { messages, pkg } = await publint({ pack: { tarball }, strict: true })
  return messages.map(
    (message) => `${message.code}: ${formatMessage(message, pkg, { color: false })}`,
  )
}

async function checkTypes(tarball: Uint8Array): Promise<string[]> {
  const result = await checkPackage(createPackageFromTarballData(tarball))
  if (!result.types) return ['The package has no types.']
  return result.problems
    .filter((problem) => !('resolutionKind' in problem) || modes.includes(problem.resolutionKind))
    .map((problem) => {
      const { kind, ...details } = problem
      return `${kind}: ${JSON.stringify(details)}`
    })
}

/** The most declarations, and the most bytes of them without comments, that a user may have to read. */
const [MAX_DECLARATIONS, MAX_API] = [250, 55_000]

async function checkApi(write = false): Promise<string[]> {
  const text = await apiReport(await readEntries())
  const count = text.match(/^(export )?(declare )?(interface|type|class|function|const) /gm)!.length
  if (count > MAX_DECLARATIONS || text.length > MAX_API) {
    return [
      `The public API has ${count} declarations of ${text.length} bytes; at most ${MAX_DECLARATIONS} of ${MAX_API} are allowed.`,
    ]
  }
  if (write) await writeFile(report, text)
  const before = await readFile(report, 'utf8').catch(() => '')
  if (before === text) return []
  return [
    'The public API differs from test/package/api.md. If the change is intended: npm run check:package -- --write',
    ...changedLines(before, text),
  ]
}

const options = readScriptOptions({ write: { type: 'boolean' } }, USAGE)
if (options) {
  await build()
  const { file, folder, paths } = await pack()
  const tarball = await readFile(file)
  await rm(folder, { recursive: true })
  const sizes = await checkSizes(entryLimits)
  const checks: [name: string, detail: string, problems: string[]][] = [
    ['files', `${paths.length}`, await unexpectedFiles(paths)],
    [
      'package.json',
      (await readManifest()).version,
      await checkManifest(new Uint8Array(tarball).buffer),
    ],
    ['tarball', `${Math.ceil(tarball.length / 1024)} KiB`, checkTarball(tarball)],
    ['types', modes.join(', '), await checkTypes(tarball)],
    ['size', sizes.sizes.join(', '), sizes.problems],
    ['public API', 'api.md', await checkApi(options.write)],
  ]
  for (const [name, detail, problems] of checks) {
    console.log(problems.length > 0 ? `✗ ${name}\n${problems.join('\n')}` : `✓ ${name} (${detail})`)
    if (problems.length > 0) process.exitCode = 1
  }
}
