/** `sluice docs` and `sluice help`: the documentation in the package, as Markdown. */
import { readdir, readFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import type { Call } from './call.ts'
import { meantBy, readArguments } from './options.ts'

const docsUsage = (title: string) => `Prints the documentation of this version as Markdown.

  ${title} [page]

  page    such as throttle-logins, or one section: configuration#namespaces.
          Without it, a list of all pages
  --help  show this text

Exits with 1 if there is no such page or section.`

export async function main(args: string[], call: Call): Promise<void> {
  const options = readArguments(args, {}, docsUsage(call.title), call)
  if (!options) return
  if (options.positionals.length > 1) return call.onUsageError('Expected one page')
  const [name = 'README', anchor] = (options.positionals[0] ?? '').split('#')
  const pages = await pagesOf(call.file)
  const wanted = name.replace(/^(\.\/)?docs\/|\.md$/g, '') || 'README'
  const found = [...pages].find(([path]) => path === wanted || path.endsWith(`/${wanted}`))
  const text = found && (anchor ? sectionOf(found[1], anchor) : found[1])
  if (!text) {
    const what = found ? `section "${anchor}" on the page ${found[0]}` : `page "${name}"`
    const meant = found
      ? meantBy(anchor!, anchorsOf(found[1]))
      : meantBy(
          wanted,
          [...pages.keys()].flatMap((path) => [path, basename(path)]),
        )
    throw new Error(`There is no ${what}${meant} To list the pages: npx sluice docs`)
  }
  // The pages for contributors are in the repository only.
  console.log(plain(wanted === 'README' ? text.split('\n## Contribute')[0]! : text))
}

const helpUsage = (
  title: string,
) => `Explains a finding of check, a log event, a field of the configuration, or a
command.

  ${title} <name>

  name    such as login-fails-open, store-error, clientAddress or dev
  --help  show this text

Exits with 1 if the documentation has no section of this name.`

export async function help(args: string[], call: Call): Promise<void> {
  const options = readArguments(args, {}, helpUsage(call.title), call)
  if (!options) return
  const [name, ...others] = options.positionals
  if (!name || others.length > 0) return call.onUsageError('Expected one name')
  const pages = await pagesOf(call.file)
  const sections = (paths: string[]) =>
    paths.flatMap((path) => {
      const text = pages.get(path) ?? ''
      const anchors = [name, `policy-${name}`, `npx-sluice-${name}`]
      const section = anchors.map((anchor) => sectionOf(text, anchor)).find(Boolean)
      return section ? [`${plain(section)}\n\nThe whole page: npx sluice docs ${path}`] : []
    })
  const found = sections(FIRST)
  const [text] = found.length > 0 ? [found.join('\n\n')] : sections([...pages.keys()])
  if (text) return console.log(text)
  const known = FIRST.flatMap((path) => anchorsOf(pages.get(path) ?? '')).map(withoutPrefix)
  throw new Error(
    `The documentation has no section "${name}"${meantBy(name, known)} To list the pages: npx sluice docs. To search: grep -r ${JSON.stringify(name)} ${folderOf(call.file)}`,
  )
}

const withoutPrefix = (anchor: string) => anchor.replace(/^(policy|npx-sluice)-/, '')

/** The pages that list names. A name may be on several of them. */
const FIRST = ['linter', 'log-events', 'configuration', 'policies', 'cli'].map(
  (page) => `reference/${page}`,
)

/** The folder beside that of the program: dist in the package, cli in the repository. */
const folderOf = (program: string) => join(dirname(dirname(program)), 'docs')

/** The texts of the pages, by their paths without `.md`. */
async function pagesOf(program: string): Promise<Map<string, string>> {
  const folder = folderOf(program)
  const names = await readdir(folder, { recursive: true })
  const paths = names.filter((name) => name.endsWith('.md')).sort()
  const texts = paths.map((path) => readFile(join(folder, path), 'utf8'))
  const pages = (await Promise.all(texts)).map(
    (text, at) => [paths[at]!.slice(0, -3), text] as const,
  )
  return new Map(pages)
}

/** The part below a heading, or the row of a table with its header; `undefined` if a page has no such anchor. */
function sectionOf(text: string, anchor: string): string | undefined {
  const lines = text.split('\n')
  const at = lines.findIndex((line) => line.includes(`<a id="${anchor}">`))
  if (at >= 0 && lines[at]!.startsWith('|')) {
    let first = at
    while (lines[first - 1]?.startsWith('|')) first -= 1
    // Further rows with an empty first cell belong to the row.
    const rest = lines.slice(at + 1)
    const end = rest.findIndex((line) => !line.startsWith('| |'))
    return [...lines.slice(first, first + 2), lines[at], ...rest.slice(0, end)].join('\n')
  }
  const headings: [at: number, level: number, slug: string][] = []
  let inCode = false
  for (const [index, line] of lines.entries()) {
    if (/^ *```/.test(line)) inCode = !inCode
    const [, marks, title] = (!inCode && /^(#+) (.*)/.exec(line)) || []
    if (marks) headings.push([index, marks.length, slugOf(title!)])
  }
  const own = headings.findIndex(([index, , slug]) => slug === anchor || index === at)
  if (own < 0) return undefined
  const [start, level] = headings[own]!
  const next = headings.slice(own + 1).find(([, other]) => other <= level)
  return lines.slice(start, next?.[0]).join('\n').trimEnd()
}

/** The anchors of a page: those of its headings, and those that it names. */
const anchorsOf = (text: string) =>
  [...text.matchAll(/^##+ (.+)|<a id="([^"]+)">/gm)].map(([, title, id]) => id ?? slugOf(title!))

/** The anchor of a heading, as GitHub names it. */
const slugOf = (title: string) =>
  title
    .replace(/<[^>]*>|\[([^\]]*)\]\([^)]*\)/g, '$1')
    .toLowerCase()
    .replace(/[^\p{L}\p{N}\s_-]/gu, '')
    .replaceAll(' ', '-')

const plain = (text: string) => text.replace(/<a id="[^"]*"><\/a>/g, '').trimEnd()
