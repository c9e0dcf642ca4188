/** `node src/main.ts`: serves the Upstash REST API from any Redis. */
import { main } from './cli.ts'

await main(process.argv.slice(2))
