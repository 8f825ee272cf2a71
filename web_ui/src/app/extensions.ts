/** Extensions of pipeplan that the server has: the page names them, and leaves out what the others would do. */

export function isInstalled(extension: string): boolean {
  return (document.body.dataset.extensions ?? "").split(" ").includes(extension);
}
