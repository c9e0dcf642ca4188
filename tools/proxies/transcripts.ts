/** `npm run transcripts`: runs nginx and Caddy with their examples, and writes what a client receives into docs/contribute/proxy-transcripts.md. */
import { writeBetween } from '../markers.ts'
import { buildStack } from '../stack.ts'
import { findProxy } from './binaries.ts'
import { record } from './transcript.ts'

const file = new URL('../../docs/contribute/proxy-transcripts.md', import.meta.url)

await buildStack()
for (const name of ['nginx', 'caddy'] as const) {
  const binary = await findProxy(name, console.log)
  const text = await record(name, binary)
  await writeBetween(file, `transcripts:${name}`, `\`\`\`\n${text.trimEnd()}\n\`\`\``)
  console.log(`${binary.source}\n\n${text}`)
}
