/**
 * Breaks the Lua in every way of `mutants/list.ts`, one at a time and in memory, and sees that the
 * named tests notice: `node dev/mutants.ts [word in a fault or file]`. Ends with 1 if one survives.
 */
import { execFile } from 'node:child_process'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type Mutant, mutants } from './mutants/list.ts'

const path = (relative: string) => fileURLToPath(new URL(relative, import.meta.url))
const vitest = path('../node_modules/vitest/vitest.mjs')
const lawRuns = process.env.LAW_RUNS ?? '400'

interface Report {
  numFailedTests: number
  numPassedTests: number
  testResults: {
    assertionResults: { status: string; title: string; failureMessages: string[] }[]
  }[]
}

/** Runs test files of `test/script/` on a script with one fault, or none. */
async function run(files: string[], mutant?: Mutant): Promise<Report> {
  const folder = await mkdtemp(join(tmpdir(), 'sluice-mutant-'))
  const report = join(folder, 'report.json')
  const edits = mutant ? [[mutant.file, mutant.search, mutant.replace]] : []
  const args = ['run', '--config', path('mutants/vitest.config.ts'), '--reporter', 'json']
  args.push('--outputFile', report, ...(mutant ? ['--bail', '1'] : []))
  args.push(...files.map((file) => `test/script/${file}.test.ts`))
  const options = {
    cwd: path('..'),
    env: { ...process.env, LAW_RUNS: lawRuns, MUTANT: JSON.stringify(edits) },
    timeout: 300_000,
    maxBuffer: 2 ** 28,
  }
  try {
    // That it fails is what is hoped for; the report tells the rest.
    const said = await new Promise<string>((resolve) => {
      execFile(process.execPath, [vitest, ...args], options, (error, stdout, stderr) => {
        resolve(`${stdout}${stderr}${error?.signal ?? ''}`)
      })
    })
    const text = await readFile(report, 'utf8').catch(() => {
      throw new Error(`vitest ended without a report. It said:\n${said}`)
    })
    return JSON.parse(text)
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

/** The test that noticed, or why nothing that counts did. */
async function kill(mutant: Mutant): Promise<{ killed: boolean; text: string }> {
  const lua = await readFile(path(`../lua/${mutant.file}`), 'utf8')
  const found = lua.split(mutant.search).length - 1
  if (found !== 1) return { killed: false, text: `NOT MADE: its text stands there ${found} times` }
  const { testResults } = await run([mutant.killedBy], mutant)
  const failed = testResults
    .flatMap(({ assertionResults }) => assertionResults)
    .filter(({ status }) => status === 'failed')
  if (failed.length === 0) return { killed: false, text: `SURVIVED ${mutant.killedBy}` }
  // A script that does not run is noticed by anything: it proves nothing about the tests.
  const message = failed[0]!.failureMessages.join('\n')
  if (!message.includes('AssertionError') || /\bERR (?!sluice)/.test(message)) {
    return { killed: false, text: `DIED, was not killed: ${message.slice(0, 300)}` }
  }
  return { killed: true, text: `killed by ${mutant.killedBy}: ${failed[0]!.title}` }
}

const word = process.argv[2] ?? ''
const chosen = mutants.filter(({ file, fault }) => `${file} ${fault}`.includes(word))
if (chosen.length === 0) {
  console.error(`No mutant has ${JSON.stringify(word)} in its file or fault.`)
  process.exit(1)
}

const sound = await run([...new Set(chosen.map(({ killedBy }) => killedBy))])
if (sound.numFailedTests > 0 || sound.numPassedTests === 0) {
  console.error(`The Lua as it is fails ${sound.numFailedTests} tests: first mend that.`)
  process.exit(1)
}

const survivors: Mutant[] = []
const queue = [...chosen]
async function work() {
  for (let mutant = queue.shift(); mutant; mutant = queue.shift()) {
    const { killed, text } = await kill(mutant)
    console.log(`${killed ? '  ' : '! '}${mutant.file}: ${mutant.fault}: ${text}`)
    if (!killed) survivors.push(mutant)
  }
}
await Promise.all([work(), work()])
console.log(`${chosen.length} mutants, ${chosen.length - survivors.length} killed`)
process.exit(survivors.length > 0 ? 1 : 0)
