/** Bundles the playground: a page, its script, and the worker with the deployed code. */
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'
import { fieldDocs } from './field-docs.ts'

const root = fileURLToPath(new URL('../../', import.meta.url))
const folder = join(root, 'site/playground')

/** What a card needs the address of the site for. */
const addressesOf = (site: string) => `    <meta property="og:url" content="${site}/playground/">
    <meta property="og:image" content="${site}/card.png">
`

/** The files of the playground, by name. `site` is the address of the site, or empty. */
export async function bundlePlayground(site: string): Promise<Map<string, string>> {
  const read = (path: string) => readFile(join(root, path), 'utf8')
  const [html, page, worker, docs, ...styles] = await Promise.all([
    read('site/playground/index.html'),
    bundle('main.ts'),
    bundle('worker.ts'),
    fieldDocs(),
    read('cli/dashboard/page/base.css'),
    read('cli/dashboard/page/style.css'),
    read('site/playground/style.css'),
  ])
  return new Map([
    ['index.html', html.replace('    <title>', `${site && addressesOf(site)}$&`)],
    ['style.css', styles.join('\n')],
    ['page.js', page],
    ['worker.js', worker],
    ['fields.json', JSON.stringify(docs)],
  ])
}

async function bundle(entry: string): Promise<string> {
  const bundle = await rolldown({
    input: join(folder, entry),
    platform: 'browser',
    tsconfig: false,
    logLevel: 'silent',
    resolve: {
      alias: {
        'node:net': join(folder, 'net.ts'),
        'csv-parse/sync': 'csv-parse/browser/esm/sync',
      },
    },
    transform: { define: { 'process.env': '({})' } },
  })
  const { output } = await bundle.generate({
    minify: true,
    codeSplitting: false,
    comments: { legal: true },
  })
  await bundle.close()
  return output[0].code
}
