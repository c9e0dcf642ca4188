import { readFile, writeFile } from 'node:fs/promises'

/** Replaces the text between `<!-- name -->` and `<!-- /name -->` in a file. */
export async function writeBetween(file: URL, name: string, text: string): Promise<void> {
  const [open, close] = [`<!-- ${name} -->`, `<!-- /${name} -->`]
  const before = await readFile(file, 'utf8')
  const [start, end] = [before.indexOf(open), before.indexOf(close)]
  if (start < 0 || end < start) throw new Error(`${file.pathname} has no ${open} … ${close}`)
  const after = `${before.slice(0, start)}${open}\n${text.trim()}\n${before.slice(end)}`
  await writeFile(file, after)
}
