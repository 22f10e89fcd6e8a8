import react from "@vitejs/plugin-react";
import { fileURLToPath } from "node:url";
import { defineConfig } from "vite";

const sdk = fileURLToPath(new URL("../../sdks/typescript/src/index.ts", import.meta.url));

// Two builds: the page into dist/page, and with --ssr the server into dist/server, our SDK compiled in from its sources.
export default defineConfig(({ isSsrBuild }) => ({
  plugins: [react()],
  resolve: { alias: { "opensandbox-client": sdk } },
  build: {
    outDir: isSsrBuild ? "dist/server" : "dist/page",
    emptyOutDir: true,
    assetsInlineLimit: 0, // the page's content security policy allows no data: fonts
    target: isSsrBuild ? "node20" : "es2022",
  },
}));
