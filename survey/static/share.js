/**
 * Shows the Copy buttons of the Share page, which copy the field that each one names.
 *
 * Without this script or the clipboard, people select the text of the field.
 */

for (const button of document.querySelectorAll("button[data-copy]")) {
  const field = document.getElementById(button.getAttribute("data-copy") ?? "");
  const status = button.parentElement?.querySelector("[role=status]");
  const isText = field instanceof HTMLInputElement || field instanceof HTMLTextAreaElement;
  if (!isText || !status || !navigator.clipboard) continue;
  button.removeAttribute("hidden");
  button.addEventListener("click", async () => {
    field.select();
    try {
      await navigator.clipboard.writeText(field.value);
      status.textContent = "Copied.";
    } catch {
      status.textContent = "Not copied. The text is selected: copy it with your keyboard.";
    }
  });
}
