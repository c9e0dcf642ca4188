/** `npm run replay`: shows what a configuration would have done to the requests of an access log. */
import { fileURLToPath } from 'node:url'
import { main } from '../cli/replay.ts'

const fail = (message: string) => {
  console.error(message)
  process.exitCode = 1
}

await main(process.argv.slice(2), {
  title: 'npm run replay --',
  file: fileURLToPath(import.meta.url),
  onUsageError: (message) => fail(`${message}\nRun with --help to list all options.`),
}).catch((error) => fail(error.message))
