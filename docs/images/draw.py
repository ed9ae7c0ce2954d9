"""Draws the pictures of docs/how-it-decides.md from a simulated run, and those of docs/benchmarks.md and README.md.

    draw.py share SPANS TRACE HOUR    a day from that hour on: of `preheat share --timeline SPANS --trace TRACE`
    draw.py OUT RULES.json    OUT: a folder of `preheat simulate --out`; RULES: /api/v1/pools/.../rules of `preheat view`
    draw.py pools             the table that benchmarks/pools.sh prints, from standard input
"""
import csv
import gzip
import json
import math
import sys

INK, FAINT, HOT, STARTING, STANDBY, LATE = '#1f2933', '#6b7785', '#0072b2', '#e69f00', '#d5dbe1', '#d55e00'
WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 860, 320, 54, 16, 40, 40


class Picture:
    """Axes with a scale each, and shapes in their units."""

    def __init__(self, title, x_range, y_range, x_label, y_label):
        self.x_range, self.y_range = x_range, y_range
        self.parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{title}" '
                      f'font-family="system-ui, sans-serif" font-size="12">',
                      f'<rect width="{WIDTH}" height="{HEIGHT}" fill="#fff"/>',
                      f'<text x="{LEFT}" y="18" fill="{INK}" font-size="14" font-weight="600">{title}</text>']
        self.text(WIDTH - RIGHT, HEIGHT - 6, x_label, FAINT, 'end')
        self.text(4, TOP - 8, y_label, FAINT)

    def x(self, value):
        low, high = self.x_range
        return LEFT + (value - low) / (high - low) * (WIDTH - LEFT - RIGHT)

    def y(self, value):
        low, high = self.y_range
        return HEIGHT - BOTTOM - (value - low) / (high - low) * (HEIGHT - TOP - BOTTOM)

    def ticks(self, xs, ys):
        for value, text in ys:
            y = self.y(value)
            self.parts.append(f'<line x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}" stroke="#e4e7eb"/>')
            self.text(LEFT - 8, y + 4, text, FAINT, 'end')
        for value, text in xs:
            self.text(self.x(value), HEIGHT - BOTTOM + 16, text, FAINT, 'middle')

    def steps(self, points, begin='M'):
        """A path that keeps its level until the next point."""
        path, last = [], points[0][1]
        for x, y in points:
            path.append(f'{begin if not path else "L"}{self.x(x):.1f},{self.y(last):.1f}L{self.x(x):.1f},{self.y(y):.1f}')
            last = y
        return ''.join(path)

    def area(self, points, base, colour):
        back = []
        for (x, _), (_, y) in zip(reversed(base), [base[-1], *list(reversed(base))[:-1]]):
            back.append((x, y))
        self.parts.append(f'<path d="{self.steps(points)}{self.steps(back, "L")}Z" fill="{colour}"/>')

    def line(self, points, colour):
        self.parts.append(f'<path d="{self.steps(points)}" fill="none" stroke="{colour}" stroke-width="1.4"/>')

    def mark(self, x, y, colour, size, extra=''):
        self.parts.append(f'<circle cx="{self.x(x):.1f}" cy="{self.y(y):.1f}" r="{size:.1f}" fill="{colour}" {extra}/>')

    def text(self, x, y, text, colour=INK, anchor='start'):
        self.parts.append(f'<text x="{x:.1f}" y="{y:.1f}" fill="{colour}" text-anchor="{anchor}">{text}</text>')

    def legend(self, entries):
        x = WIDTH - RIGHT - sum(28 + 6.6 * len(text) for text, _ in entries)
        for text, colour in entries:
            self.parts.append(f'<rect x="{x:.0f}" y="26" width="12" height="10" fill="{colour}"/>')
            self.text(x + 16, 35, text)
            x += 28 + 6.6 * len(text)

    def save(self, path):
        with open(path, 'w', encoding='utf-8') as file:
            file.write('\n'.join([*self.parts, '</svg>']) + '\n')


def a_day(rows, slots, path):
    day = [(float(row['t_s']) / 3600 - 48, row) for row in rows if 48 <= float(row['t_s']) / 3600 <= 72]
    late = [(t, float(row['late'])) for t, row in day if float(row['late']) > 0]
    day = day[::10]  # a point every two and a half minutes
    hot = [(t, float(row['ready'])) for t, row in day]
    coming = [(t, y + float(row['starting'])) for (t, y), (_, row) in zip(hot, day)]
    stock = [(t, y + float(row['standby'])) for (t, y), (_, row) in zip(coming, day)]
    demand = [(t, (float(row['running']) + float(row['waiting'])) / slots) for t, row in day]
    top = max(y for _, y in stock) + 1
    picture = Picture('The third day of a run: capacity by tier, and demand', (0, 24), (0, top), 'hour of the day', 'replicas')
    picture.ticks([(h, f'{h}:00') for h in range(0, 25, 3)], [(v, v) for v in range(0, int(top) + 1, 2)])
    picture.area(stock, coming, STANDBY)
    picture.area(coming, hot, STARTING)
    picture.area(hot, [(t, 0) for t, _ in day], '#a6cbe3')
    picture.line(hot, HOT)
    picture.line(demand, INK)
    for t, count in late:
        picture.mark(t, top - 0.4, LATE, 1 + min(5.0, math.sqrt(count) / 3), 'fill-opacity="0.5"')
    picture.legend([('late requests', LATE), ('hot', '#a6cbe3'), ('starting', STARTING), ('standby', STANDBY),
                    ('running and waiting, in replicas', INK)])
    picture.save(path)


def rules_and_prices(rules, path):
    def share(value):
        return math.log10(max(value, 1e-4))

    points = [(share(r['lateShare']), r['dollarsPerDay'], r) for r in rules['rules'] if r['lateShare'] < 0.3]
    low = min(cost for _, cost, _ in points) * 0.95
    high = min(max(cost for _, cost, _ in points), low * 1.8)
    picture = Picture('Shadow fleets: what each rule would have cost, and how much would have been late',
                      (-4, math.log10(0.3)), (low, high), 'share of late requests', 'dollars a day')
    picture.ticks([(x, f'{100 * 10 ** x:g} %') for x in (-4, -3, -2, -1)], [(y, y) for y in range(int(low / 10) * 10 + 10, int(high), 10)])
    objective = picture.x(share(rules['objectiveLateShare']))
    picture.parts.append(f'<line x1="{objective:.1f}" x2="{objective:.1f}" y1="{TOP}" y2="{HEIGHT - BOTTOM}" stroke="{LATE}" '
                         f'stroke-dasharray="5 4"/>')
    picture.text(objective + 6, TOP + 12, 'objective', LATE)
    for x, y, rule in points:
        if y <= high:
            picture.mark(x, y, FAINT if rule['standby'] is None else HOT, 3, 'fill-opacity="0.6"')
    x, y, _ = next(p for p in points if p[2]['number'] == rules['inForce'])
    picture.mark(x, y, 'none', 7, f'stroke="{LATE}" stroke-width="2"')
    picture.text(picture.x(x) + 11, picture.y(y) + 15, 'rule in force', LATE)
    picture.legend([('with standby', HOT), ('without', FAINT)])
    picture.save(path)


def many_pools(rows, path):
    """Both axes in powers of ten, so that what grows with the pools has the slope of the dashed line."""
    def points(column):
        return [(math.log10(row[0]), math.log10(max(row[column], 0.01))) for row in rows]

    picture = Picture('A tick and its memory by number of pools', (0, 3.8), (-2, 4), 'pools', 'MiB resident; milliseconds a tick')
    picture.ticks([(x, f'{10 ** x:,}') for x in range(4)], [(y, f'{10 ** y:g}') for y in range(-2, 5)])
    picture.parts.append(f'<path d="M{picture.x(0):.1f},{picture.y(-2):.1f}L{picture.x(3.8):.1f},{picture.y(1.8):.1f}" '
                         f'stroke="{FAINT}" stroke-dasharray="5 4" fill="none"/>')
    for column, colour in ((1, HOT), (3, LATE)):
        line = points(column)
        picture.parts.append(f'<path d="M{"L".join(f"{picture.x(x):.1f},{picture.y(y):.1f}" for x, y in line)}" fill="none" '
                             f'stroke="{colour}" stroke-width="1.4"/>')
        for (x, y), row in zip(line, rows):
            picture.mark(x, y, colour, 3)
            picture.text(picture.x(x) + 6, picture.y(y) - 6, f'{row[column]:g}', colour)
    picture.legend([('MiB resident', HOT), ('ms a tick', LATE), ('as the pools', FAINT)])
    picture.save(path)


MODELS = ['#0072b2', '#e69f00', '#009e73', '#cc79a7', '#56b4e9', '#d55e00', '#b8a600', '#7b5ea7', '#8c564b', '#1b6f5c', '#f28e9b', '#4d4d4d']
CELLS, ROW = 288, 15  # of five minutes, over a day; pixels


class Strips(Picture):
    """Rows of cells below each other; cells of one colour are one shape."""

    def __init__(self, title, rows):
        super().__init__(title, (0, CELLS), (0, 1), '', '')
        self.height, self.cells = TOP + 66 + ROW * rows, {}
        self.parts = [part.replace(f' {HEIGHT}"', f' {self.height}"').replace(f'height="{HEIGHT}"', f'height="{self.height}"')
                      for part in self.parts[:3]]
        for hour in range(0, 25, 3):
            self.text(self.x(hour * 12), self.height - 8, f'{hour}:00', FAINT, 'middle')

    def row(self, y, colours):
        """The same colour beside itself is one cell; None is none."""
        since = 0
        for k in range(1, CELLS + 1):
            if k < CELLS and colours[k] == colours[since]:
                continue
            if colours[since]:
                self.cells.setdefault(colours[since], []).append(
                    f'M{self.x(since):.1f},{y}H{self.x(k):.1f}V{y + ROW - 3}H{self.x(since):.1f}Z')
            since = k

    def save(self, path):
        self.parts += [f'<path d="{"".join(cells)}" fill="{colour}"/>' for colour, cells in self.cells.items()]
        super().save(path)


def awake_longest(spans, begin):
    """{slot: who was awake longest in each cell, '' where nobody was, None where there was no slot}"""
    slots = {}
    for span in spans:
        since, until = ((float(span[key]) - begin) / 300 for key in ('from_s', 'until_s'))
        row = slots.setdefault(int(span['slot']), [None] * CELLS)
        for k in range(max(0, int(since)), min(CELLS, math.ceil(until))):
            row[k] = row[k] or {'': 0}
            if span['state'] == 'awake':
                row[k][span['model']] = row[k].get(span['model'], 0) + min(until, k + 1) - max(since, k)
    return {slot: [cell and max(cell, key=cell.get) for cell in row] for slot, row in sorted(slots.items()) if any(row)}


def pale(colour, share):
    """The colour on white, by a share of it."""
    return '#' + ''.join(f'{round(255 - share * (255 - int(colour[k:k + 2], 16))):02x}' for k in (1, 3, 5))


def models_on_slots(spans, requests, begin, path):
    models, slots = sorted(requests, key=lambda m: -sum(requests[m])), awake_longest(spans, begin)
    colours = dict(zip(models, MODELS), **{'': '#e4e7eb'})
    picture = Strips(f'{len(models)} models on the GPUs that they share, over a day', len(models) + len(slots))
    picture.text(LEFT, TOP, 'requests of each model in five minutes: darker is more', FAINT)
    y = TOP + 8
    for m in models:
        most = max(requests[m])
        picture.row(y, [pale(colours[m], 0.25 * math.ceil(1 + 3 * math.sqrt(n / most))) if n else '#f2f4f6' for n in requests[m]])
        y += ROW
    y += 26
    picture.text(LEFT, y - 8, 'each GPU: the model that was awake longest in five minutes; grey is none', FAINT)
    for row in slots.values():
        picture.row(y, [cell if cell is None else colours[cell] for cell in row])
        y += ROW
    picture.save(path)


def requests_by_model(path, begin):
    counts = {}
    with gzip.open(path, 'rt') as file:
        for row in csv.DictReader(file):
            k = int((float(row['arrival_s']) - begin) // 300)
            counts.setdefault(row['class'], [0] * CELLS)
            if 0 <= k < CELLS:
                counts[row['class']][k] += 1
    return counts


def main():
    if sys.argv[1:2] == ['share']:
        begin = 3600 * float(sys.argv[4])
        with open(sys.argv[2], encoding='utf-8') as file:
            spans = [s for s in csv.DictReader(file) if begin < float(s['until_s']) and float(s['from_s']) < begin + 86400]
        models_on_slots(spans, requests_by_model(sys.argv[3], begin), begin, 'docs/images/share.svg')
        return
    if sys.argv[1:] == ['pools']:
        cells = [[cell.strip() for cell in line.strip('|\n ').split('|')] for line in sys.stdin if line.startswith('|')]
        many_pools([[float(cell) for cell in row] for row in cells if len(row) == 4 and row[0].isdigit()], 'docs/images/pools.svg')
        return
    out, rules = sys.argv[1:3]
    with open(f'{out}/timeline.csv', encoding='utf-8') as file:
        a_day(list(csv.DictReader(file)), 105, 'docs/images/a-day.svg')
    with open(rules, encoding='utf-8') as file:
        rules_and_prices(json.load(file), 'docs/images/rules.svg')


main()
