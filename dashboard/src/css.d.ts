/** Style sheets are bundled by esbuild; a module only has to be able to name one. */
declare module "*.css";
