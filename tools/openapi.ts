/** `npm run openapi`: writes the OpenAPI description of the decision API, generated from the schemas that check bodies in the Worker. */
import { writeFile } from 'node:fs/promises'
import { gzipSync } from 'node:zlib'
import { serialized } from './openapi/document.ts'

const file = new URL('../src/api/openapi.json', import.meta.url)
const text = serialized()
await writeFile(file, text)
console.log(`src/api/openapi.json (${(gzipSync(text).length / 1024).toFixed(1)} KiB gzip)`)
