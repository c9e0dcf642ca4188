/** `npm run site`: builds the documentation and the playground as a static site, and checks its links, the size of its first page and the number of its words. */
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readScriptOptions } from '../cli/options.ts'
import { buildSite, builtFiles } from './site/build.ts'
import { brokenLinks, firstPageSize, MAX_FIRST_PAGE, MAX_WORDS, wordsOf } from './site/check.ts'
import { serveSite } from './site/serve.ts'

const USAGE = `Builds the documentation and the playground into site/dist, and checks every link, the size of the first
page and the number of words. Exits with 1 if a check fails.

  npm run site -- [options]

  --serve   serve the site on this machine afterwards, until Ctrl-C
  --port N  the port (default 8790)
  --deploy  deploy it to Cloudflare as a Worker with static assets (site/wrangler.toml)
  --help    show this text`

async function main() {
  const options = readScriptOptions(
    {
      serve: { type: 'boolean' },
      port: { type: 'string', default: '8790' },
      deploy: { type: 'boolean' },
    },
    USAGE,
  )
  if (!options) return
  await buildSite()
  const files = builtFiles()
  const broken = brokenLinks(files)
  const size = firstPageSize(files)
  const words = wordsOf(files)
  for (const line of broken) console.error(line)
  console.log(
    `site/dist: ${files.size} files, ${broken.length} broken links, ${words} of ${MAX_WORDS} words. First page: ${(size / 1024).toFixed(1)} KiB gzip.`,
  )
  if (broken.length > 0 || size > MAX_FIRST_PAGE || words > MAX_WORDS) {
    process.exitCode = 1
    return
  }
  if (options.deploy) {
    const root = fileURLToPath(new URL('..', import.meta.url))
    const wrangler = join(root, 'node_modules/.bin/wrangler')
    const { status } = spawnSync(wrangler, ['deploy', '--config', 'site/wrangler.toml'], {
      cwd: root,
      stdio: 'inherit',
    })
    process.exitCode = status ?? 1
  }
  if (options.serve) {
    const { url } = await serveSite(files, Number(options.port))
    console.log(`The site is at ${url}/\nCtrl-C stops it.`)
  }
}

await main()
