"""What people work as, to tell "I'm a nurse" from "I'm a mess"."""

from __future__ import annotations

from typing import Final

OCCUPATIONS: Final = frozenset(
    """
    accountant actor actress administrator agronomist analyst anaesthetist apprentice archaeologist architect archivist
    artist assistant astronomer attorney author baker banker barber barista bartender beekeeper biologist bookkeeper
    bookseller botanist bricklayer broker builder butcher carer caregiver caretaker carpenter cashier chef chemist
    childminder cleaner clerk coach composer conductor consultant contractor conservator cook copywriter counsellor
    courier curator dancer dentist designer detective developer dietitian director doctor dressmaker
    driver ecologist economist editor electrician engineer farmer filmmaker firefighter fisherman florist
    forester freelancer gardener geologist goldsmith hairdresser handyman historian housekeeper illustrator intern
    interpreter investigator janitor jeweller joiner journalist judge labourer landscaper lawyer lecturer
    librarian lifeguard linguist locksmith logistician luthier machinist magistrate manager marketer mason masseur
    mathematician mechanic meteorologist midwife miller miner musician nanny neurologist novelist nurse nutritionist
    optician optometrist orthodontist osteopath paediatrician painter paramedic pathologist pharmacist photographer
    physicist physio physiotherapist pianist pilot plasterer plumber podiatrist poet policeman policewoman politician
    postman potter priest principal producer professor programmer proofreader psychiatrist psychologist publisher
    radiographer radiologist realtor receptionist recruiter reporter researcher sailor salesman saleswoman
    scientist sculptor seamstress secretary shepherd singer sociologist soldier solicitor sommelier
    statistician stonemason surgeon surveyor tailor teacher technician tester therapist trader trainee trainer
    translator tutor undertaker upholsterer vet veterinarian violinist waiter waitress warden watchmaker weaver
    welder winemaker writer zoologist
    """.split()
)
"""The last word of an occupation: "primary school teacher" is one because a teacher is."""
