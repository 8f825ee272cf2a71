// The button that copies a block of commands copies the commands, without prompts and what they print.
document.addEventListener(
  "click",
  (event) => {
    const button = event.target instanceof Element ? event.target.closest("[data-clipboard-target]") : null;
    const block = button?.closest(".language-console");
    if (!block) return;
    const commands = [];
    let goesOn = false;
    for (const line of (block.querySelector("code")?.textContent ?? "").split("\n")) {
      if (goesOn || line.startsWith("$ ")) commands.push(goesOn ? line : line.slice(2));
      goesOn = (goesOn || line.startsWith("$ ")) && line.endsWith("\\");
    }
    button.setAttribute("data-clipboard-text", commands.join("\n"));
  },
  true,
);
