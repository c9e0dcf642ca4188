import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { rolldown } from 'rolldown'

/** The files of the page, by path. */
export type PageFiles = Map<string, { type: string; body: string }>

const folder = fileURLToPath(new URL('page/', import.meta.url))

/** Bundles the page: one document, one script, two style sheets. */
export async function bundlePage(): Promise<PageFiles> {
  const [html, base, css, script] = await Promise.all([
    readFile(join(folder, 'index.html'), 'utf8'),
    readFile(join(folder, 'base.css'), 'utf8'),
    readFile(join(folder, 'style.css'), 'utf8'),
    bundleScript(),
  ])
  return new Map([
    ['/', { type: 'text/html; charset=utf-8', body: html }],
    ['/base.css', { type: 'text/css; charset=utf-8', body: base }],
    ['/style.css', { type: 'text/css; charset=utf-8', body: css }],
    ['/page.js', { type: 'text/javascript; charset=utf-8', body: script }],
  ])
}

async function bundleScript(): Promise<string> {
  const bundle = await rolldown({
    input: join(folder, 'main.ts'),
    platform: 'browser',
    tsconfig: false,
    logLevel: 'silent',
  })
  const { output } = await bundle.generate({ minify: true, codeSplitting: false })
  await bundle.close()
  return output[0].code
}

/** The text of a module that replaces page-files.ts in the package. */
export const pageModule = async (): Promise<string> =>
  `const files = new Map(${JSON.stringify([...(await bundlePage())])})\nexport const pageFiles = async () => files\n`
