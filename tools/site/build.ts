/** Builds the site: the pages of docs/ with VitePress, and the playground. */
import { spawn } from 'node:child_process'
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { cp, mkdir, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import manifest from '../../package.json' with { type: 'json' }
import { REPOSITORY } from './addresses.ts'
import { preparePages, type SiteFiles, sidebar } from './pages.ts'
import { bundlePlayground } from './playground.ts'

const folder = fileURLToPath(new URL('../../site/', import.meta.url))
export const distFolder = join(folder, 'dist')
/** The prepared pages, which the generator reads. */
const pagesFolder = join(folder, '.cache/pages')

async function write(files: SiteFiles | Map<string, string>, into: string) {
  for (const [name, body] of files) {
    const path = join(into, name)
    await mkdir(dirname(path), { recursive: true })
    await writeFile(path, body)
  }
}

/** Runs a program. @throws {Error} with its output if it fails */
async function run(command: string, args: string[]) {
  const child = spawn(command, args, { cwd: folder, stdio: ['ignore', 'pipe', 'pipe'] })
  let said = ''
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (chunk) => {
      said += chunk
    })
  }
  const code = await new Promise((resolve, reject) => {
    child.once('error', reject)
    child.once('close', resolve)
  })
  if (code !== 0) throw new Error(`${command} ${args.join(' ')} has failed:\n${said}`)
}

const robots = (site: string) =>
  `User-agent: *\nAllow: /\n${site && `Sitemap: ${site}/sitemap.xml\n`}`

/**
 * Builds the site into site/dist.
 * @param site its address, such as `https://docs.example.com`, for the sitemap and the pictures of cards. Defaults to the variable `SITE_URL`;
 * without an address there is neither.
 */
export async function buildSite(site = process.env.SITE_URL ?? ''): Promise<void> {
  const generator = join(folder, 'node_modules/vitepress/bin/vitepress.js')
  const { dependencies } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'))
  if (!Object.keys(dependencies).every((name) => existsSync(join(folder, 'node_modules', name))))
    await run('npm', ['ci', '--ignore-scripts', '--no-audit', '--no-fund'])
  await rm(pagesFolder, { recursive: true, force: true })
  await write(preparePages(), pagesFolder)
  const { version } = manifest
  const about = { sidebar: sidebar(), site, repository: REPOSITORY, version }
  await writeFile(join(folder, '.cache/site.json'), JSON.stringify(about))
  await cp(join(folder, 'public'), join(pagesFolder, 'public'), { recursive: true })
  await writeFile(join(pagesFolder, 'public/robots.txt'), robots(site))
  await write(await bundlePlayground(site), join(pagesFolder, 'public/playground'))
  await run(process.execPath, [generator, 'build', '.'])
}

/** The files of the built site, by path. */
export function builtFiles(): SiteFiles {
  const names = readdirSync(distFolder, { recursive: true, withFileTypes: true })
  return new Map(
    names
      .filter((entry) => entry.isFile())
      .map((entry) => {
        const path = join(entry.parentPath, entry.name)
        return [path.slice(distFolder.length + 1), readFileSync(path)]
      }),
  )
}
