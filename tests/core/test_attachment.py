"""What a message without words holds."""

import pytest

from roomlore.core.transcript import attachment
from roomlore.testing.builders import message


@pytest.mark.parametrize(
    ("metadata", "wanted"),
    [
        ({}, ("", "")),
        ({"caption": "🦊", "media_type": "sticker"}, ("sticker", "🦊")),
        ({"photo": "photos/photo_1.jpg"}, ("picture", "")),
        ({"caption": "map.png", "attachments": [{"name": "map.png", "url": "x"}]}, ("picture", "map.png")),
        ({"type": "语音"}, ("voice", "")),
        ({"type": "表情"}, ("sticker", "")),
        ({"attachments": ["trip.mp4"]}, ("video", "trip.mp4")),
        ({"media_type": "video_file", "caption": "周五"}, ("video", "周五")),
        ({"caption": "contract.pdf"}, ("file", "contract.pdf")),
        ({"caption": 5, "attachments": [{"name": None}, 3], "photo": ["x"]}, ("", "")),
        ({"caption": "x" * 100_000 + ".png"}, ("file", "x" * 200)),
    ],
)
def test_what_the_export_says(metadata, wanted):
    assert attachment(message(1, text="", metadata=metadata)) == wanted
