/** `npm run simulate`: simulates many isolates, and writes the results into the documentation. */
import { writeFile } from 'node:fs/promises'
import { writeBetween } from '../../dev/markers.ts'
import { main } from './cli.ts'
import { mastersText, picture, text } from './report.ts'

const docs = new URL('../../docs/reference/', import.meta.url)

await main(process.argv.slice(2), {
  command: 'npm run simulate --',
  async write(results) {
    const page = new URL('benchmarks.md', docs)
    const masters = mastersText(results)
    if (masters) return writeBetween(page, 'masters', masters)
    await writeBetween(page, 'simulation', text(results))
    await writeFile(new URL('simulation.svg', docs), picture(results))
  },
})
