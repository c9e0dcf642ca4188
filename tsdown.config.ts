import { defineConfig } from 'tsdown'
import { inlineScript } from './dev/package/inline-script.ts'

/** The published package: ES modules and their declarations in dist. package.json exports each entry. */
export default defineConfig({
  entry: {
    index: 'src/index.ts',
    client: 'src/client/client.ts',
    lint: 'src/lint/lint.ts',
  },
  tsconfig: 'src/tsconfig.json',
  format: 'esm',
  platform: 'neutral',
  target: 'es2022',
  fixedExtension: false,
  hash: false,
  sourcemap: true,
  dts: true,
  deps: { alwaysBundle: ['hono/tiny'], dts: { neverBundle: [/^hono/] }, onlyBundle: ['hono'] },
  outputOptions: {
    codeSplitting: { groups: [{ name: 'hono', test: /node_modules\/hono\// }] },
  },
  plugins: [inlineScript()],
})
