/** `npm run openapi`: writes the description of the decision API, made of the schemas that the Worker checks bodies with. */
import { writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { written } from './openapi/document.ts'

const file = new URL('../src/api/openapi.json', import.meta.url)
const text = written()
await writeFile(file, text)
console.log(`src/api/openapi.json (${(gzipSync(text).length / 1024).toFixed(1)} KiB gzip)`)
