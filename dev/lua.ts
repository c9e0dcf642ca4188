/** `npm run lua`: writes the shortened Lua scripts and their SHA-1 into modules of the Worker. Run it after each change of `lua/`. */
import { writeFile } from 'node:fs/promises'
import { moduleFile, moveModule, moveModuleFile, scriptModule } from './lua/script.ts'

await writeFile(moduleFile, scriptModule())
await writeFile(moveModuleFile, moveModule())
