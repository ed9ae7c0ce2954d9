// Elements out of code. Whatever a cluster or a history names goes through textContent, never through markup.

const svgNames = "http://www.w3.org/2000/svg";

function put(node, kids) {
	for (const kid of kids.flat(Infinity))
		if (kid !== null && kid !== undefined && kid !== false)
			node.append(kid);
	return node;
}

function set(node, attributes) {
	for (const [name, value] of Object.entries(attributes || {})) {
		if (value === null || value === undefined || value === false)
			continue;
		if (name === "on")
			Object.entries(value).forEach(([event, listener]) => node.addEventListener(event, listener));
		else if (name === "style")
			Object.entries(value).forEach(([property, text]) => node.style.setProperty(property, text));
		else
			node.setAttribute(name, value === true ? "" : String(value));
	}
	return node;
}

/** el("p", { class: "faint", on: { click } }, "text", other) */
export function el(tag, attributes, ...kids) {
	return put(set(document.createElement(tag), attributes), kids);
}

export function svg(tag, attributes, ...kids) {
	return put(set(document.createElementNS(svgNames, tag), attributes), kids);
}

export function byId(id) {
	return document.getElementById(id);
}

/** Sets the text only where it differs, so that a selection or a screen reader is not disturbed. */
export function say(node, text) {
	const words = text === null || text === undefined ? "" : String(text);

	if (node.textContent !== words)
		node.textContent = words;
}

/** Swaps what a node holds; a node that is the same stays where it is. */
export function fill(node, ...kids) {
	node.replaceChildren();
	return put(node, kids);
}

/**
 * One child per item, kept by key: children that stay are updated in place and keep focus and scroll.
 * `make(item)` gives an element; `update(element, item)` may be left out.
 */
export function keyed(parent, items, keyOf, make, update) {
	const before = new Map(Array.from(parent.children, child => [child.dataset.key, child]));
	let at = parent.firstElementChild;

	for (const item of items) {
		const key = String(keyOf(item));
		let child = before.get(key);

		before.delete(key);
		if (!child) {
			child = make(item);
			child.dataset.key = key;
		} else if (update) {
			update(child, item);
		}
		if (child === at)
			at = at.nextElementSibling;
		else
			parent.insertBefore(child, at);
	}
	for (const gone of before.values())
		gone.remove();
}

/** Columns: { name, of(row) -> text or node, isNumber, isHead }. Rows may carry a mark through chosen(row). */
export function table(columns, rows, { caption, chosen } = {}) {
	const cell = (row, c) => el(c.isHead ? "th" : "td", { scope: c.isHead && "row", class: c.isNumber && "number" }, c.of(row));

	return el("table", null,
		caption && el("caption", { class: "unseen" }, caption),
		el("thead", null, el("tr", null, columns.map(c => el("th", { scope: "col", class: c.isNumber && "number" }, c.name)))),
		el("tbody", null, rows.map(row => el("tr", { "data-chosen": chosen && chosen(row) }, columns.map(c => cell(row, c))))));
}

/** A region that scrolls on its own can be reached by the keyboard. */
export function scrolling(name, node, isTall) {
	return el("div", { class: isTall ? "scroll tall" : "scroll", tabindex: "0", role: "region", "aria-label": name }, node);
}

/** A text to take along, with a button that copies it. */
export function copyBox(text, told) {
	const code = el("code", { tabindex: "0" }, text), button = el("button", { type: "button" }, "Copy");

	button.addEventListener("click", async () => {
		try {
			await navigator.clipboard.writeText(text);
			say(button, "Copied");
			tell(told);
		} catch {
			getSelection().selectAllChildren(code);
			say(button, "Marked: copy it by hand");
		}
	});
	return el("div", { class: "copy" }, code, button);
}

/** Says one thing to a screen reader, politely; the same words twice are said once. */
export function tell(words) {
	say(byId("told"), words);
}
