"""A code interpreter: data goes in, Python runs in a sandbox, a chart comes out.

With an image that has matplotlib the chart is what the code shows, a PNG. Without, plain Python draws an SVG file that is downloaded.
"""
import base64
import os
import sys
from pathlib import Path

from opensandbox_client import LanguageMissing, Sandbox, SandboxClient

DATA = b"month,rain\nJan,47\nFeb,39\nMar,45\nApr,41\nMay,56\nJun,58\nJul,66\nAug,61\nSep,51\nOct,46\nNov,53\nDec,57\n"

READ = 'import csv\nrows = [(row["month"], int(row["rain"])) for row in csv.DictReader(open("/workspace/rain.csv"))]\n'

WITH_MATPLOTLIB = """
import matplotlib.pyplot as plt
plt.figure(figsize=(7, 3))
plt.bar([month for month, _ in rows], [rain for _, rain in rows], color="#0f766e")
plt.title("Rain in mm")
plt.show()
"""

PLAIN = """
bars = "".join(
    f'<rect x="{40 + 50 * i}" y="{180 - 2 * rain}" width="34" height="{2 * rain}" rx="3"/>'
    f'<text x="{57 + 50 * i}" y="198">{month}</text><text x="{57 + 50 * i}" y="{174 - 2 * rain}">{rain}</text>'
    for i, (month, rain) in enumerate(rows))
with open("/workspace/chart.svg", "w") as file:
    file.write('<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 680 210" font-family="sans-serif" font-size="13" text-anchor="middle" '
               f'fill="#0f766e"><rect width="680" height="210" fill="#fff"/><text x="340" y="20" font-size="15">Rain in mm</text>{bars}</svg>')
print("wettest:", max(rows, key=lambda row: row[1])[0])
"""


def picture(sandbox: Sandbox) -> bytes | None:
    """The chart as matplotlib shows it; None where the image has no Python kernel or no matplotlib."""
    try:
        done = sandbox.execute(READ + WITH_MATPLOTLIB, timeout=60)
    except LanguageMissing:
        return None
    shown = [result.data["image/png"] for result in done.results if "image/png" in result.data]
    return base64.b64decode(shown[0]) if shown else None


def main(folder: Path) -> None:
    with SandboxClient() as client, client.create_sandbox(image=os.environ.get("OPENSANDBOX_IMAGE"), timeout=300) as sandbox:
        sandbox.upload_file(DATA, "rain.csv")
        if png := picture(sandbox):
            chart = folder / "chart.png"
            chart.write_bytes(png)
        else:
            sandbox.upload_file((READ + PLAIN).encode(), "draw.py")
            done = sandbox.run("python3 draw.py")
            print(done.stdout + done.stderr, end="")
            chart = folder / "chart.svg"
            sandbox.download_file("chart.svg", chart)
        print("wrote", chart)


main(Path(sys.argv[1] if len(sys.argv) > 1 else "."))
