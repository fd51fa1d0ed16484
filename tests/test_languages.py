"""Searches in many scripts, languages and spellings find the right text."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import sennit
from sennit import Database, Record

TEXTS = {
    "zh": "今天下午三点在北京大学图书馆开会，讨论机器学习项目。",
    "zh-tw": "臺灣的夜市有很多好吃的小吃。",
    "ja": "東京タワーの近くにある小さな喫茶店でコーヒーを飲みました。",
    "ja-kana": "スーパーマーケットでりんごを買う",
    "ko": "서울에서 부산까지 고속열차로 두 시간 반이 걸립니다.",
    "de": "Die Straßenbahn fährt über die Brücke zum Hauptbahnhof in Zürich.",
    "fr": "L'été dernier, nous avons mangé des crêpes à l'hôtel près de la forêt.",
    "ru": "Библиотека открыта каждый день с десяти часов утра.",
    "el": "Η βιβλιοθήκη είναι ανοιχτή κάθε μέρα.",
    "tr": "İstanbul'da güneşli bir gün, ılık rüzgâr.",
    "ar": "المكتبة مفتوحة كل يوم من الساعة العاشرة",
    "hi": "पुस्तकालय हर दिन सुबह दस बजे खुलता है",
    "vi": "Thư viện mở cửa từ mười giờ sáng",
    "camel": "def getUserAccountById(userId): return HTTPServerPool.lookup(userId)",
    "snake": "max_retry_count = settings.default_retry_count",
    "dotted": "call torch.nn.functional.softmax before os.path.join",
    "kebab": "install the scikit-learn and cache-control packages",
    "mixed": "在Python中使用parseJsonFile函数读取配置",
    "plural": "The libraries were running several indexes",
}


@pytest.fixture(scope="module", params=["buffer", "segment"])
def db(request: pytest.FixtureRequest) -> Iterator[Database]:
    with sennit.open(":memory:") as opened:
        opened.add(Record(id=name, text=text) for name, text in TEXTS.items())
        if request.param == "segment":
            opened.admin.optimise()
        yield opened


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("机器学习", "zh"),
        ("图书馆", "zh"),
        ("北京大学", "zh"),
        ("夜市", "zh-tw"),
        ("喫茶店", "ja"),
        ("東京タワー", "ja"),
        ("コーヒー", "ja"),
        ("りんご", "ja-kana"),
        ("ｽｰﾊﾟｰﾏｰｹｯﾄ", "ja-kana"),
        ("고속열차", "ko"),
        ("부산", "ko"),
        ("Straßenbahn", "de"),
        ("strassenbahn", "de"),
        ("BRÜCKE", "de"),
        ("zurich", "de"),
        ("Hauptbahnhof", "de"),
        ("crepes", "fr"),
        ("hôtel foret", "fr"),
        ("библиотека", "ru"),
        ("БИБЛИОТЕКА", "ru"),
        ("βιβλιοθηκη", "el"),
        ("istanbul", "tr"),
        ("المكتبة", "ar"),
        ("पुस्तकालय", "hi"),
        ("thu vien", "vi"),
        ("getUserAccountById", "camel"),
        ("getuseraccountbyid", "camel"),
        ("user account", "camel"),
        ("server pool", "camel"),
        ("max_retry_count", "snake"),
        ("retry count", "snake"),
        ("default retry", "snake"),
        ("torch.nn.functional.softmax", "dotted"),
        ("softmax", "dotted"),
        ("os.path.join", "dotted"),
        ("scikit-learn", "kebab"),
        ("scikit", "kebab"),
        ("parseJsonFile", "mixed"),
        ("json", "mixed"),
        ("配置", "mixed"),
        ("library running index", "plural"),
    ],
)
def test_a_text_is_found_by_its_words(db: Database, query: str, expected: str) -> None:
    result = db.search(query, recipe="keyword")
    assert expected in [hit.id for hit in result][:1]
    assert expected in [hit.id for hit in db.search(query)][:5]


def test_a_query_of_stop_words_only_finds_results() -> None:
    with sennit.open(":memory:") as db:
        db.add([Record(id="play", text="to be or not to be"), Record(id="other", text="a sonnet on summer")])
        assert [hit.id for hit in db.search("to be or not to be", recipe="keyword")] == ["play"]
