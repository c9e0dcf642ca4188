/** Runs the commands of the guides about `sluice replay`, and compares the output with what the pages show. */
import { execFile } from 'node:child_process'
import { copyFile, mkdir, readFile, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { gunzipSync } from 'node:zlib'
import parseArguments from 'string-argv'
import { afterAll, beforeAll, describe, expect, test } from 'vitest'
import { type CliProject, cliProject } from '../support/cli-project.ts'
import { restoreHeap, root } from '../support/dev-command.ts'
import { blocksOf, pages } from '../support/pages.ts'

const log = `${root}test/cli/replay/logs/apache.log.gz`

let project: CliProject
beforeAll(async () => {
  project = await cliProject()
  const { folder } = project
  await writeFile(join(folder, 'access.log'), gunzipSync(await readFile(log)))
  await mkdir(join(folder, 'logs'))
  await copyFile(log, join(folder, 'logs/access.log.1.gz'))
})
afterAll(async () => {
  restoreHeap()
  await project.remove()
})

/** Runs a command line in the project, and `npx sluice` in this process. Returns the output and the errors. */
async function shell(command: string): Promise<string> {
  let output: Uint8Array | string = ''
  for (const part of command.split(' | ')) {
    const [program, ...args] = parseArguments(part)
    if (program === 'npx') {
      const { stdout, stderr } = await project.sluice(args.slice(1), { input: output })
      output = stdout + stderr
    } else {
      const options = { cwd: project.folder, encoding: 'buffer', maxBuffer: 1e8 } as const
      output = (await promisify(execFile)(program!, args, options)).stdout
    }
  }
  return String(output)
}

const guides = pages.filter(({ path }) => /^docs\/guides\/replay-/.test(path))

describe.each(guides.map((page) => [page.path, page] as const))('The page %s', (path, page) => {
  const blocks = blocksOf(page)
  const steps = blocks
    .filter(({ language, name }) => language === 'console' && name === 'replay')
    .flatMap(({ code }) => code.split(/^\$ /m).slice(1))
    .map((step) => /^(.*)\n([\s\S]*)$/.exec(step)!.slice(1) as [string, string])

  beforeAll(async () => {
    for (const { code } of blocks.filter(({ language }) => language === 'ts')) {
      await project.write(/^\/\/ (\S+)/.exec(code)![1]!, code)
    }
  })

  test('It has commands.', () => expect(steps.length).toBeGreaterThan(1))

  test.each(steps)('The output of %s is the one on the page.', async (command, shown) => {
    const output = await shell(command)
    // A line with "…" stands for any lines.
    let from = 0
    for (const part of shown.split(/^…\n/m)) {
      const at = output.indexOf(part, from)
      expect(at, `${path}: ${part}\nis not in\n${output}`).toBeGreaterThanOrEqual(from)
      from = at + part.length
    }
  })
})
