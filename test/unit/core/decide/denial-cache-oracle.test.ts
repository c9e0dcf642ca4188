import { denialCacheLaw } from './denial-cache-law.ts'

denialCacheLaw(250)
