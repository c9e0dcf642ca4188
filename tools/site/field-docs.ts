/** The documentation of fields that the editor of the playground shows: from the tables of docs/reference/configuration.md and policies.md. */
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
  'API key fields': ['apiKeys'],
  'CORS fields': ['cors'],
  'Shield fields': ['shield'],
}

const reference = new URL('../../docs/reference/', import.meta.url)

const plain = (text: string) =>
  text
    .replace(/<[^>]*>/g, '')
    .replace(/\[([^\]]*)\]\([^)]*\)/g, '$1')
    .replaceAll('\\|', '|')
    .replaceAll('`', '')
    .trim()

/** @throws {Error} if the pages have no table for one of the objects */
export async function fieldDocs(): Promise<FieldDocs> {
  const texts = await Promise.all(
    ['configuration.md', 'policies.md'].map((name) => readFile(new URL(name, reference), 'utf8')),
  )
  const sections = new Map(
    texts
      .join('\n')
      .split(/^##+ /m)
      .map((section) => {
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
    if (rows.length === 0) throw new Error(`${reference.pathname} has no table "${title}"`)
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
