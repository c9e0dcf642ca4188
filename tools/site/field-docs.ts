/** The documentation of fields that the editor of the playground shows: from the tables of docs/reference/configuration.md. */
import { readFile } from 'node:fs/promises'
import type { FieldDocs } from '../../site/playground/editor/path.ts'

/** The objects that a table describes. */
const objects: Record<string, string[]> = {
  'Configuration fields': [''],
  'Policy fields': ['policies'],
  'Client address fields': ['clientAddress'],
  'Condition fields': ['policies.match', 'policies.match.not', 'allow', 'deny'],
  'Refusal fields': ['refusal', 'policies.refusal'],
  'Cost fields': ['policies.cost'],
  'Reserve fields': ['policies.reserve'],
  'Plan fields': ['policies.plan'],
  'Claim limit fields': ['policies.limit'],
  'Missing key fields': ['policies.onMissingKey'],
  'Penalty fields': ['policies.penalty'],
  'Lease fields': ['policies.lease'],
  'Live fields': ['live'],
  'Caller limit fields': ['api.callers'],
  'API key fields': ['apiKeys'],
  'CORS fields': ['cors'],
  'Shield fields': ['shield'],
}

const page = new URL('../../docs/reference/configuration.md', import.meta.url)

const plain = (text: string) =>
  text
    .replace(/<[^>]*>/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('\\|', '|')
    .replaceAll('`', '')
    .trim()

/** @throws {Error} if the page has no table for one of the objects */
export async function fieldDocs(): Promise<FieldDocs> {
  const sections = new Map(
    (await readFile(page, 'utf8')).split(/^##+ /m).map((section) => {
      const [title = ''] = section.split('\n', 1)
      return [title, section]
    }),
  )
  const docs: FieldDocs = {}
  for (const [title, paths] of Object.entries(objects)) {
    const rows = [
      ...(sections.get(title) ?? '').matchAll(
        /^\| (?:<a [^>]*><\/a>)?`(\w+)` \|(.*?)\|(.*)\|(.*)\|$/gm,
      ),
    ]
    if (rows.length === 0) throw new Error(`${page.pathname} has no table "${title}"`)
    const fields = Object.fromEntries(
      rows.map(([, name, type, byDefault, text]) => [
        name,
        `${plain(type!)}. Default: ${plain(byDefault!)}. ${plain(text!)}`,
      ]),
    )
    for (const path of paths) docs[path] = fields
  }
  return docs
}
